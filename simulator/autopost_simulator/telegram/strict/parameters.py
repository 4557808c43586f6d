"""The parameters of every method with their types. Names that only old versions documented are known too."""

_PLACE = "business_connection_id:str chat_id:chat message_thread_id:int direct_messages_topic_id:int"
_OPTIONS = (
    "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
    "reply_parameters:reply reply_to_message_id:int allow_sending_without_reply:bool"
)
_SEND = f"{_PLACE} {_OPTIONS} suggested_post_parameters:any reply_markup:markup"
_CAPTION = "caption:str parse_mode:str caption_entities:entities"
_VISIBLE = "show_caption_above_media:bool has_spoiler:bool"
_SIZED = "duration:int width:int height:int thumbnail:file"
_EDIT = "business_connection_id:str chat_id:chat message_id:int inline_message_id:str reply_markup:markup"
_MESSAGE = "chat_id:chat message_id:int"
_COPY = f"chat_id:chat message_thread_id:int direct_messages_topic_id:int from_chat_id:chat {_OPTIONS}"
_SCOPE = "scope:any language_code:str"

_METHODS = {
    "getMe": "",
    "getChat": "chat_id:chat",
    "getChatMember": "chat_id:chat user_id:int",
    "getChatAdministrators": "chat_id:chat",
    "getChatMemberCount": "chat_id:chat",
    "getChatMembersCount": "chat_id:chat",
    "getFile": "file_id:str",
    "sendMessage": f"{_SEND} text:str parse_mode:str entities:entities link_preview_options:preview "
    "disable_web_page_preview:bool",
    "sendPhoto": f"{_SEND} photo:file {_CAPTION} {_VISIBLE}",
    "sendVideo": f"{_SEND} video:file {_SIZED} {_CAPTION} {_VISIBLE} cover:file start_timestamp:int "
    "supports_streaming:bool",
    "sendAnimation": f"{_SEND} animation:file {_SIZED} {_CAPTION} {_VISIBLE}",
    "sendDocument": f"{_SEND} document:file thumbnail:file {_CAPTION} disable_content_type_detection:bool",
    "sendAudio": f"{_SEND} audio:file {_CAPTION} duration:int performer:str title:str thumbnail:file",
    "sendVoice": f"{_SEND} voice:file {_CAPTION} duration:int",
    "sendSticker": f"{_SEND} sticker:file emoji:str",
    "sendPoll": f"{_SEND} question:str question_parse_mode:str question_entities:entities options:any "
    "is_anonymous:bool type:str allows_multiple_answers:bool allows_revoting:bool members_only:bool country_codes:any "
    "shuffle_options:bool hide_results_until_closes:bool allow_adding_options:bool correct_option_id:int "
    "correct_option_ids:any explanation:str explanation_parse_mode:str explanation_entities:entities "
    "explanation_media:any description:str description_parse_mode:str description_entities:entities media:any "
    "open_period:int close_date:int is_closed:bool",
    "sendLocation": f"{_SEND} latitude:float longitude:float horizontal_accuracy:float live_period:int heading:int "
    "proximity_alert_radius:int",
    "sendMediaGroup": f"{_PLACE} {_OPTIONS} media:album reply_markup:markup",
    "sendChatAction": "business_connection_id:str chat_id:chat message_thread_id:int action:str",
    "editMessageText": f"{_EDIT} text:str parse_mode:str entities:entities link_preview_options:preview "
    "disable_web_page_preview:bool",
    "editMessageCaption": f"{_EDIT} {_CAPTION} show_caption_above_media:bool",
    "editMessageMedia": f"{_EDIT} media:media",
    "editMessageReplyMarkup": _EDIT,
    "deleteMessage": _MESSAGE,
    "deleteMessages": "chat_id:chat message_ids:any",
    "copyMessage": f"{_COPY} message_id:int {_CAPTION} show_caption_above_media:bool video_start_timestamp:int "
    "suggested_post_parameters:any reply_markup:markup",
    "copyMessages": f"{_COPY} message_ids:any remove_caption:bool",
    "forwardMessage": f"{_COPY} message_id:int video_start_timestamp:int suggested_post_parameters:any",
    "forwardMessages": f"{_COPY} message_ids:any",
    "pinChatMessage": f"business_connection_id:str {_MESSAGE} disable_notification:bool",
    "unpinChatMessage": f"business_connection_id:str {_MESSAGE}",
    "unpinAllChatMessages": "chat_id:chat",
    "setMyCommands": f"commands:any {_SCOPE}",
    "getMyCommands": _SCOPE,
    "deleteMyCommands": _SCOPE,
    "logOut": "",
    "close": "",
    "getUpdates": "offset:int limit:int timeout:int allowed_updates:names",
    "setWebhook": "url:str certificate:file ip_address:str max_connections:int allowed_updates:names "
    "drop_pending_updates:bool secret_token:str fix_ip_address:bool",
    "deleteWebhook": "drop_pending_updates:bool",
    "getWebhookInfo": "",
    "answerCallbackQuery": "callback_query_id:str text:str show_alert:bool url:str cache_time:int",
}

PARAMETERS: dict[str, dict[str, str]] = {
    method: {name: kind for name, _, kind in (given.partition(":") for given in listed.split())}
    for method, listed in _METHODS.items()
}
