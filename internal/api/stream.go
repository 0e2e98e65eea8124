package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/changes"
)

const streamPath = "/v1/stream"

// (rule AP6)
const (
	commentTime = 15 * time.Second
	// sendTime is how long an event may take to be sent to a client that does not read.
	sendTime = 10 * time.Second
)

func (a *api) addStream(h huma.API, mux *http.ServeMux) {
	op := get(h, "stream", streamPath, "Changes, as server-sent events", streamText)
	op.Parameters = []*huma.Param{
		{Name: "topic", In: "query", Description: "KIND or KIND:ID, separated by commas, such as `execution:12,step:12,task`: events of these only. ID is the number of an execution (execution, step, progress) or task (task), or the name of a job (schedule) or worker (worker). None selects all", Schema: &huma.Schema{Type: "string"}},
		{Name: "Last-Event-ID", In: "header", Description: "The ID of the last event that was received: the later ones are sent first", Schema: &huma.Schema{Type: "string"}},
	}
	op.Responses["200"] = &huma.Response{
		Description: "The events: name, ID, and this object as data",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[changes.Event](), true, "Event")}},
	}
	h.OpenAPI().AddOperation(&op)
	mux.HandleFunc("GET "+streamPath, a.stream)
}

const streamText = `Server-sent events: each names a thing that changed. Read its state by the other operations.
Listen first, then read: every change after the beginning of the response is sent, at most a second
late, and once for several changes of a thing within a second; an event can be repeated.

- execution, step: its status changed. progress: the counters of a running step changed.
- task: a task was submitted, or changed. schedule: a registered job, or its schedule. worker: a worker began, ended, was lost, or is draining.
- reset: anything may have changed. It is sent if the events after Last-Event-ID are not known any more, or not to this server.
- away: the database does not answer. back: it answers again, and the changes meanwhile follow.

A comment is sent every 15 seconds. The stream ends with the server. At most 64 listeners, 8 of one
client: else 503 with Retry-After.`

// stream neither buffers nor masks: events have numbers, and names that the client may list.
func (a *api) stream(w http.ResponseWriter, r *http.Request) {
	topics, err := topicsOf(r.URL.Query())
	if err != nil {
		newProblem(http.StatusUnprocessableEntity, err.Error()).write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy in front must not collect events
	if r.Method == http.MethodHead {
		return
	}
	ctx, end := a.servers.untilShutdown(r.Context())
	defer end()
	if until := access.CallerOf(ctx).Until; !until.IsZero() {
		var over context.CancelFunc
		ctx, over = context.WithDeadline(ctx, until)
		defer over()
	}
	listener, err := a.Changes.Listen(ctx, clientOf(r), topics, r.Header.Get("Last-Event-ID"))
	var full *changes.FullError
	switch {
	case errors.As(err, &full):
		newProblem(http.StatusServiceUnavailable, full.Reason).write(w)
		return
	case err != nil:
		newProblem(http.StatusServiceUnavailable, "the server is stopping").write(w)
		return
	}
	defer listener.Close()
	s := &sender{w: w, controller: http.NewResponseController(w)}
	if errors.Is(s.controller.Flush(), http.ErrNotSupported) {
		newProblem(http.StatusNotImplemented, "a handler around this one keeps answers until they are complete, so there are no live updates").write(w)
		return
	}
	s.err = supported(s.controller.SetReadDeadline(time.Time{}))
	s.send(": listening\n\n")
	for s.err == nil && ctx.Err() == nil {
		waiting, enough := context.WithTimeout(ctx, commentTime)
		events, at := listener.Next(waiting)
		enough()
		for _, e := range events {
			data, _ := json.Marshal(e) //nolint:errcheck,errchkjson // of plain fields
			s.write(fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", e.Kind, e.ID, data))
		}
		s.send(fmt.Sprintf(": \nid: %s\n\n", at)) // an ID without data is stored, and no event
	}
}

func clientOf(r *http.Request) string {
	if name := access.CallerOf(r.Context()).Name; name != "" {
		return "client " + name
	}
	return "address " + access.HostOf(r.RemoteAddr)
}

func topicsOf(query url.Values) (changes.Topics, error) {
	for name := range query {
		if name != "topic" {
			return nil, fmt.Errorf("unknown query parameter %s: allowed is topic", name)
		}
	}
	return changes.ParseTopics(query["topic"])
}

// servers ends streams with their server, which waits for the requests.
type servers struct {
	mu     sync.Mutex
	ending map[*http.Server]chan struct{}
}

func (s *servers) untilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	server, is := ctx.Value(http.ServerContextKey).(*http.Server)
	if !is {
		return ctx, cancel
	}
	ending := s.of(server)
	go func() {
		select {
		case <-ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (s *servers) of(server *http.Server) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	ending, known := s.ending[server]
	if !known {
		ending = make(chan struct{})
		server.RegisterOnShutdown(sync.OnceFunc(func() {
			close(ending)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.ending, server)
		}))
		if s.ending == nil {
			s.ending = map[*http.Server]chan struct{}{}
		}
		s.ending[server] = ending
	}
	return ending
}

// supported: a handler around this one can hide the deadlines of the connection.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// sender keeps the first error.
type sender struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	err        error
}

func (s *sender) write(text string) {
	if s.err == nil {
		s.err = supported(s.controller.SetWriteDeadline(time.Now().Add(sendTime)))
	}
	if s.err == nil {
		_, s.err = s.w.Write([]byte(text))
	}
}

func (s *sender) send(text string) {
	if s.write(text); s.err == nil {
		s.err = s.controller.Flush()
	}
}
