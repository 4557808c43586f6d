// The control API: an answer other than 2xx becomes an error with the text of the simulator.

const ask = async (verb, path, body) => {
  const answer = await fetch(`/_sim/${path}`, {
    method: verb,
    body: body === undefined ? undefined : JSON.stringify(body),
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error ?? `${answer.status} ${answer.statusText}`);
  return told;
};

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const remove = (path) => ask("DELETE", path);
