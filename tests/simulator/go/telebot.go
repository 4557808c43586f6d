// telebot against a simulator; only the address is ours.
//
//	telebot calls BASE TOKEN CHANNEL FOLDER   prints the result of each call as one JSON line
//	telebot poll|hook BASE TOKEN              says "ready", then answers people until its standard input ends
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	tele "gopkg.in/telebot.v3"
)

type object map[string]interface{}

func main() {
	if os.Args[1] == "calls" {
		channel, err := strconv.ParseInt(os.Args[4], 10, 64)
		must(err)
		calls(os.Args[2], os.Args[3], tele.ChatID(channel), os.Args[5])
		return
	}
	answer(os.Args[1], os.Args[2], os.Args[3])
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func made(base, token string, poller tele.Poller) (*tele.Bot, error) {
	return tele.NewBot(tele.Settings{URL: base, Token: token, Poller: poller})
}

var html = &tele.SendOptions{ParseMode: tele.ModeHTML}

func calls(base, token string, channel tele.ChatID, folder string) {
	bot, err := made(base, token, nil)
	must(err)
	at := func(name string) tele.File { return tele.FromDisk(filepath.Join(folder, name)) }
	open := &tele.ReplyMarkup{InlineKeyboard: [][]tele.InlineButton{{{Text: "Open", URL: "https://example.org/a"}}}}
	send := func(what interface{}, options ...interface{}) (interface{}, error) {
		return shown(bot.Send(channel, what, options...))
	}
	letter := func() *tele.Document {
		return &tele.Document{File: at("письмо.txt"), FileName: "письмо.txt", Caption: "read"}
	}
	album := tele.Album{
		&tele.Photo{File: at("a.png"), Caption: "<b>first</b>"},
		&tele.Photo{File: at("b.png")},
		&tele.Video{File: at("a.mp4")},
	}

	tell("me", bot.Me.IsBot, nil)
	chat, err := bot.ChatByID(int64(channel))
	tell("chat", chat.Title, err)
	member, err := bot.ChatMemberOf(channel, bot.Me)
	tell("rights", member.Role, err)
	one, err := send("<b>hello</b> 👍🏽 &amp; <code> x</code>", html)
	tell("text", one, err)
	long, err := bot.Send(channel, strings.Repeat("ж", 4096))
	tell("longText", len([]rune(long.Text)), err)
	one, err = send("https://example.org", tele.NoPreview, tele.Silent, tele.Protected)
	tell("quiet", one, err)
	one, err = send(&tele.Photo{File: at("a.png"), Caption: "<i>seen</i>"}, html)
	tell("photo", one, err)
	photo, err := bot.Send(channel, &tele.Photo{File: at("a.png")})
	must(err)
	one, err = send(&tele.Photo{File: tele.File{FileID: photo.Photo.FileID}})
	tell("photoAgain", one, err)
	messages, err := bot.SendAlbum(channel, album, html)
	tell("album", all(messages), err)
	one, err = send(letter(), open)
	tell("document", one, err)
	one, err = send(&tele.Video{File: at("a.mp4"), Width: 640, Height: 360, Duration: 9, Streaming: true})
	tell("video", one, err)
	one, err = send(&tele.Animation{File: at("a.mp4"), FileName: "a.mp4"})
	tell("animation", one, err)
	one, err = send(&tele.Audio{File: at("a.mp3"), FileName: "a.mp3", Performer: "Choir", Title: "Song", Duration: 9})
	tell("audio", one, err)
	tell("download", downloaded(bot, channel, letter()), nil)
	old, err := bot.Send(channel, "old", open)
	must(err)
	one, err = shown(bot.Edit(old, "<s>new</s>", html))
	tell("editAndDelete", []interface{}{one, bot.Delete(old) == nil}, err)
	old, err = bot.Send(channel, &tele.Photo{File: at("a.png"), Caption: "old"})
	must(err)
	one, err = shown(bot.EditCaption(old, "new"))
	tell("editCaption", one, err)
	_, err = made(base, "1001:dead", nil)
	tell("deadToken", nil, err)
	for name, chat := range map[string]int64{"nobody": -404, "kicked": -50, "migrated": -51, "tooFast": -1005} {
		_, err = bot.Send(tele.ChatID(chat), "x")
		tell(name, nil, err)
	}
	_, err = bot.Send(channel, strings.Repeat("x", 4097))
	tell("tooLong", nil, err)
	_, err = bot.Send(channel, "<b>x", html)
	tell("badMarkup", nil, err)
	_, err = bot.Send(channel, &tele.Photo{File: tele.File{FileID: "nothing"}})
	tell("noPhoto", nil, err)
}

func downloaded(bot *tele.Bot, channel tele.ChatID, letter *tele.Document) []string {
	sent, err := bot.Send(channel, letter)
	must(err)
	reader, err := bot.File(&tele.File{FileID: sent.Document.FileID})
	must(err)
	defer reader.Close()
	content, err := io.ReadAll(reader)
	must(err)
	return []string{sent.Document.FileName, string(content)}
}

func shown(message *tele.Message, err error) (interface{}, error) {
	if err != nil {
		return nil, err
	}
	return look(*message), nil
}

func all(messages []tele.Message) []object {
	looks := make([]object, 0, len(messages))
	for _, message := range messages {
		looks = append(looks, look(message))
	}
	return looks
}

func look(message tele.Message) object {
	kinds := []string{}
	for _, entity := range append(message.Entities, message.CaptionEntities...) {
		kinds = append(kinds, string(entity.Type))
	}
	buttons := []string{}
	if message.ReplyMarkup != nil {
		for _, row := range message.ReplyMarkup.InlineKeyboard {
			for _, button := range row {
				buttons = append(buttons, button.URL)
			}
		}
	}
	return object{"text": orNull(message.Text + message.Caption), "entities": kinds, "kind": orNull(kind(message)), "buttons": buttons}
}

func kind(message tele.Message) string {
	switch {
	case message.Photo != nil:
		return "photo"
	case message.Video != nil:
		return "video"
	case message.Animation != nil:
		return "animation"
	case message.Document != nil:
		return "document"
	case message.Audio != nil:
		return "audio"
	}
	return ""
}

func orNull(text string) interface{} {
	if text == "" {
		return nil
	}
	return text
}

func tell(name string, result interface{}, err error) {
	if err != nil {
		result = refusal(err)
	}
	line, err := json.Marshal([]interface{}{name, result})
	must(err)
	fmt.Println(string(line))
}

var unnamed = regexp.MustCompile(`^telegram: (.*) \((\d+)\)$`)

func refusal(err error) object {
	var flood tele.FloodError
	var group tele.GroupError
	var known *tele.Error
	switch {
	case errors.As(err, &flood):
		return object{"status": 429, "message": fmt.Sprintf("Too Many Requests: retry after %d", flood.RetryAfter), "retry_after": flood.RetryAfter}
	case errors.As(err, &group):
		return object{"status": 400, "message": tele.ErrGroupMigrated.Description, "migrate_to_chat_id": group.MigratedTo}
	case errors.As(err, &known):
		return object{"status": known.Code, "message": known.Description}
	}
	if match := unnamed.FindStringSubmatch(err.Error()); match != nil {
		status, _ := strconv.Atoi(match[2])
		return object{"status": status, "message": match[1]}
	}
	return object{"raised": err.Error()}
}

// hooked is a webhook with a server of its own, because telebot's is bound to one port. The server waits until the
// webhook is ready: telebot names it to Telegram before it has a channel to put updates into, and an update that comes
// in between would hang for ever.
type hooked struct {
	*tele.Webhook
	ready chan struct{}
}

func newHooked() *hooked {
	hook := &hooked{&tele.Webhook{SecretToken: "s3cret"}, make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		<-hook.ready
		hook.ServeHTTP(writer, request)
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	server.Listener = listener
	server.Start()
	hook.Endpoint = &tele.WebhookEndpoint{PublicURL: server.URL + "/hook"}
	return hook
}

func (hook *hooked) Poll(bot *tele.Bot, updates chan tele.Update, stop chan struct{}) {
	atOnce := make(chan struct{}, 1)
	atOnce <- struct{}{}
	hook.Webhook.Poll(bot, updates, atOnce)
	close(hook.ready)
	<-stop
}

// answer runs a bot.
func answer(way, base, token string) {
	var poller tele.Poller = &tele.LongPoller{Timeout: 10 * time.Second}
	if way == "hook" {
		poller = newHooked()
	}
	bot, err := made(base, token, poller)
	must(err)
	keyboard := &tele.ReplyMarkup{InlineKeyboard: [][]tele.InlineButton{{{Text: "Yes", Data: "yes"}}}}
	bot.Handle("/start", func(context tele.Context) error { return context.Send("choose", keyboard) })
	bot.Handle(tele.OnText, func(context tele.Context) error { return context.Send("you said " + context.Text()) })
	bot.Handle(tele.OnCallback, func(context tele.Context) error {
		if err := context.Respond(&tele.CallbackResponse{Text: "thanks"}); err != nil {
			return err
		}
		return context.Edit("chosen: " + context.Callback().Data)
	})
	go bot.Start()
	fmt.Println("ready")
	_, err = io.ReadAll(os.Stdin)
	must(err)
	if way == "poll" {
		bot.Stop()
	}
}
