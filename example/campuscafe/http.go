package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
)

// answer is the answer of a call that changes an order. Applied is false if there was nothing left to do:
// that is not an error, since calls are repeated.
type answer struct {
	ID      int64  `json:"id"`
	Status  State  `json:"status"`
	Applied bool   `json:"applied"`
	Error   string `json:"error,omitempty"`
}

// routes are the API. Any call may be repeated.
func routes(mux *http.ServeMux, shop *Shop) {
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) { place(w, r, shop) })
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := idOf(r)
		if err != nil {
			refuse(w, answer{}, err)
			return
		}
		o, err := shop.Order(r.Context(), id)
		if err != nil {
			refuse(w, answer{ID: id}, err)
			return
		}
		write(w, http.StatusOK, o)
	})
	mux.HandleFunc("POST /orders/{id}/{trigger}", func(w http.ResponseWriter, r *http.Request) { move(w, r, shop) })
	mux.HandleFunc("POST /events", func(w http.ResponseWriter, r *http.Request) { receive(w, r, shop) })
}

func place(w http.ResponseWriter, r *http.Request, shop *Shop) {
	var o Order
	key := r.Header.Get("Idempotency-Key")
	switch err := decode(w, r, &o); {
	case err != nil:
		refuse(w, answer{}, err)
	case key == "" || len(key) > 200:
		refuse(w, answer{}, badRequest{errors.New("the header Idempotency-Key is required, with 1 to 200 bytes: a call that is repeated must be known")})
	case o.Item == "" || o.Quantity < 1 || o.Quantity > 1000:
		refuse(w, answer{}, badRequest{errors.New("an order has an item, and a quantity of 1 to 1000")})
	default:
		placed, isNew, err := shop.Place(r.Context(), key, o)
		if err != nil {
			refuse(w, answer{ID: placed.ID, Status: placed.Status}, err)
			return
		}
		status := http.StatusOK
		if isNew {
			status = http.StatusCreated
		}
		write(w, status, answer{ID: placed.ID, Status: placed.Status, Applied: isNew})
	}
}

func move(w http.ResponseWriter, r *http.Request, shop *Shop) {
	id, err := idOf(r)
	if err != nil {
		refuse(w, answer{}, err)
		return
	}
	trigger, err := shop.trigger(kebab(r.PathValue("trigger")))
	if err != nil {
		refuse(w, answer{ID: id}, fmt.Errorf("%w: %w", err, core.ErrNotFound))
		return
	}
	result, err := shop.Apply(r.Context(), id, trigger)
	if err != nil {
		refuse(w, answer{ID: id, Status: result.State}, err)
		return
	}
	write(w, http.StatusOK, answer{ID: id, Status: result.State, Applied: result.Answer == core.Applied})
}

func receive(w http.ResponseWriter, r *http.Request, shop *Shop) {
	var e struct {
		Key     string `json:"key"`
		Order   int64  `json:"order"`
		Trigger string `json:"trigger"`
	}
	if err := decode(w, r, &e); err != nil {
		refuse(w, answer{}, err)
		return
	}
	trigger, err := shop.trigger(e.Trigger)
	if err == nil && (e.Key == "" || len(e.Key) > 200) {
		err = errors.New("key: it has 1 to 200 bytes")
	}
	if err != nil {
		refuse(w, answer{ID: e.Order}, badRequest{err})
		return
	}
	stored, err := shop.Receive(r.Context(), e.Key, e.Order, trigger)
	if err != nil {
		refuse(w, answer{ID: e.Order}, err)
		return
	}
	write(w, http.StatusAccepted, map[string]any{"id": e.Order, "key": e.Key, "stored": stored == core.Applied})
}

// trigger is the trigger of a name.
func (s *Shop) trigger(name string) (Trigger, error) {
	if len(s.orders.Machine().Move(name).From) > 0 {
		return Trigger(name), nil
	}
	var names []string
	for _, m := range s.orders.Machine().Moves() {
		names = append(names, m.Name)
	}
	return "", fmt.Errorf("there is no trigger %q (there are: %s)", name, strings.Join(names, ", "))
}

func kebab(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

type badRequest struct{ error }

func decode(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest{fmt.Errorf("the body: %w", err)}
	}
	return nil
}

func idOf(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("order %q: %w", r.PathValue("id"), core.ErrNotFound)
	}
	return id, nil
}

func refuse(w http.ResponseWriter, a answer, err error) {
	status := http.StatusInternalServerError
	a.Error = err.Error()
	_, rejected := errors.AsType[*core.TransitionError](err)
	_, bad := errors.AsType[badRequest](err)
	switch {
	case errors.Is(err, core.ErrNotFound):
		status = http.StatusNotFound
	case bad:
		status = http.StatusBadRequest
	case rejected, errors.Is(err, ErrSoldOut), errors.Is(err, ErrOtherOrder), errors.Is(err, inbox.ErrOtherEvent):
		status = http.StatusConflict
	default:
		slog.Error("request", "error", err)
		a.Error = "see the log"
	}
	write(w, status, a)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Error("answer", "error", err)
	}
}
