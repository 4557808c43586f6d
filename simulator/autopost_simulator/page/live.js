// Follows the log; reconnects by itself, each time starting with the last calls.

const LAST = 80;
const PATIENCE = 1000;

const lines = async function* (body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const pieces = (rest + value).split("\n");
    rest = pieces.pop();
    yield pieces;
  }
};

export const follow = async ({ began, came, lost }) => {
  for (;;) {
    try {
      const answer = await fetch(`/_sim/log?follow=1&last=${LAST}`);
      began();
      for await (const batch of lines(answer.body)) {
        if (batch.length) came(batch.map((line) => JSON.parse(line)));
      }
    } catch {
      // Handled below: a stream that ended and one that failed are the same for the user.
    }
    lost();
    await new Promise((resolve) => setTimeout(resolve, PATIENCE));
  }
};
