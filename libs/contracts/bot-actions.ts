// Generated from autopost_contracts.bot_actions; do not edit.
export const botActionStatuses = ["processing", "done", "error"] as const;
export type BotActionStatus = (typeof botActionStatuses)[number];
export const botActionTypes = ["transcribe_audio", "summarize", "generate_image", "process_file"] as const;
export type BotActionType = (typeof botActionTypes)[number];

export const defaultTexts: Record<BotActionType, string> = {
  transcribe_audio: "Готовим стенограмму…",
  summarize: "Готовим саммари…",
  generate_image: "Создаём изображение…",
  process_file: "Обрабатываем файл…",
};
export const fallbackText = "Выполняем действие…";

export interface BotAction {
  workspaceId: string;
  chatId: string;
  actionId: string;
  actionType: BotActionType | (string & {});
  status: BotActionStatus;
  displayText: string | null;
  payload: Record<string, unknown> | null;
  createdAt: string;
  updatedAt: string;
}

export interface ChatMessage {
  workspaceId: string;
  chatId: string;
  messageId: string;
  direction: "in" | "out";
  text: string | null;
  createdAt: string;
}

export interface ChatMessageEvent {
  type: "message";
  message: ChatMessage;
}

export interface BotActionEvent {
  type: "bot_action";
  action: BotAction;
}

export interface ResyncEvent {
  type: "resync";
}

export type ChatEvent = ChatMessageEvent | BotActionEvent | ResyncEvent;

export function shownText(action: BotAction): string {
  if (action.displayText) return action.displayText;
  const known = Object.hasOwn(defaultTexts, action.actionType);
  return known ? defaultTexts[action.actionType as BotActionType] : fallbackText;
}
