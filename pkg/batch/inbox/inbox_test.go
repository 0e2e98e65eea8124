package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		os.Exit(child(url, os.Getenv(childDies)))
	}
	os.Exit(testdb.Main(m))
}

type state string

const columns = `(id bigint PRIMARY KEY, state text NOT NULL, state_before text NOT NULL DEFAULT '', version bigint NOT NULL DEFAULT 0,
	epoch bigint NOT NULL DEFAULT 1, last_move text NOT NULL DEFAULT '', last_epoch bigint NOT NULL DEFAULT 0)`

func machine() (core.Machine[state], error) {
	return core.NewMachine("parcel",
		core.Move[state]{Name: "pack", From: []state{"NEW"}, To: "PACKED", Intent: core.IntentBegin},
		core.Move[state]{Name: "send", From: []state{"PACKED"}, To: "SENT", Intent: core.IntentBegin},
		core.Move[state]{Name: "arrive", From: []state{"SENT"}, To: "THERE", Intent: core.IntentEnd},
		core.Move[state]{Name: "lose", From: []state{"NEW", "PACKED", "SENT"}, To: "LOST", Intent: core.IntentEnd})
}

type scene struct {
	testing.TB
	*inbox.Inbox[state]
	db      tx.Database
	parcels *guard.Table[state]

	mu   sync.Mutex
	dead []core.EventDead
}

func each(t *testing.T, o inbox.Options, f func(s *scene)) {
	t.Helper()
	t.Parallel()
	eachURL(t, o, func(s *scene, _ string) { f(s) })
}

func eachURL(t *testing.T, o inbox.Options, f func(s *scene, url string)) {
	t.Helper()
	testdb.All(t, func(t *testing.T, url string) {
		s := &scene{TB: t}
		s.open(url, o)
		s.exec("CREATE TABLE parcels " + columns)
		s.exec("CREATE TABLE labels (parcel bigint NOT NULL, text text NOT NULL)")
		f(s, url)
	})
}

func (s *scene) open(url string, o inbox.Options) {
	s.Helper()
	provider, err := gormdb.Open(s.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, provider.Close()) })
	s.db, err = provider.Database(tx.Default)
	require.NoError(s, err)
	require.NoError(s, repository.New(s.db, repository.Options{}).Migrate(s.Context()))
	m, err := machine()
	require.NoError(s, err)
	s.parcels = guard.NewTable(s.db, "parcels", m, nil)
	o.Observer = core.ObserverFunc(func(_ context.Context, e core.Event) {
		if e, ok := e.(core.EventDead); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dead = append(s.dead, e)
		}
	})
	s.Inbox = inbox.New(s.parcels, repository.DefaultPrefix, o)
}

func (s *scene) exec(statement string) {
	s.Helper()
	_, err := s.db.Conn().ExecContext(s.Context(), statement)
	require.NoError(s, err)
}

func (s *scene) text(query string) (text string) {
	s.Helper()
	require.NoError(s, s.db.Conn().QueryRowContext(s.Context(), query).Scan(&text))
	return text
}

func (s *scene) insert(id int64) {
	s.Helper()
	s.exec(fmt.Sprintf("INSERT INTO parcels (id, state) VALUES (%d, 'NEW')", id))
}

func event(id int64, move string) inbox.Event {
	payload, err := json.Marshal(move)
	if err != nil {
		panic(err)
	}
	return inbox.Event{Topic: "parcels", Subject: id, DedupeKey: fmt.Sprintf("%s %d", move, id), Payload: payload}
}

func (s *scene) receive(events ...inbox.Event) {
	s.Helper()
	for _, e := range events {
		answer, err := s.Receive(s.Context(), e)
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
	}
}

func (s *scene) process() inbox.Done {
	s.Helper()
	done, err := s.Process(s.Context(), "parcels", s.handle)
	require.NoError(s, err)
	return done
}

// handle makes the move that the event names, and writes a label before it.
func (s *scene) handle(ctx context.Context, e inbox.Event) (guard.Result[state], error) {
	var move string
	if err := e.Decode(&move); err != nil {
		return guard.Result[state]{}, exception.Fatal("", err)
	}
	if _, err := tx.ConnOf(ctx, s.db).ExecContext(ctx, fmt.Sprintf("INSERT INTO labels VALUES (%d, '%s')", e.Subject, move)); err != nil {
		return guard.Result[state]{}, err
	}
	return s.parcels.Move(ctx, guard.Request{ID: e.Subject, Move: move})
}

func TestAnEventIsStoredOnce(t *testing.T) {
	each(t, inbox.Options{}, func(s *scene) {
		s.receive(event(1, "pack"))
		again := event(1, "pack")
		again.Payload = json.RawMessage(` "pack" `)
		answer, err := s.Receive(s.Context(), again)
		require.NoError(s, err)
		require.Equal(s, core.Duplicate, answer)
		for _, change := range []func(*inbox.Event){
			func(e *inbox.Event) { e.Topic = "x" }, func(e *inbox.Event) { e.Subject = 2 }, func(e *inbox.Event) { e.Payload = json.RawMessage("1") },
		} {
			other := event(1, "pack")
			change(&other)
			answer, err := s.Receive(s.Context(), other)
			require.ErrorIs(s, err, inbox.ErrOtherEvent)
			require.Equal(s, core.Rejected, answer)
		}
		_, err = s.Receive(s.Context(), inbox.Event{Topic: string(make([]byte, 101)), Payload: json.RawMessage("{")})
		require.ErrorContains(s, err, "topic: it has 101 bytes, more than the allowed 100\ndedupe key: it is empty\npayload: it is not JSON")

		undone := errors.New("undone")
		err = tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
			answer, err := s.Receive(ctx, event(2, "pack"))
			require.NoError(s, err)
			require.Equal(s, core.Applied, answer)
			_, err = s.Process(ctx, "parcels", s.handle)
			require.ErrorIs(s, err, tx.ErrTransaction)
			return undone
		})
		require.ErrorIs(s, err, undone)
		s.receive(event(2, "pack"))
	})
}

func TestOneOfManyStoresAnEvent(t *testing.T) {
	each(t, inbox.Options{}, func(s *scene) {
		var mu sync.Mutex
		answers := map[core.Answer]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				answer, err := s.Receive(s.Context(), event(1, "pack"))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					s.Error(err)
				}
				answers[answer]++
			})
		}
		wg.Wait()
		require.Equal(s, map[core.Answer]int{core.Applied: 1, core.Duplicate: 7}, answers)
	})
}

func TestAnEventThatComesTooEarlyIsOfferedWhenItsRowHasMoved(t *testing.T) {
	each(t, inbox.Options{}, func(s *scene) {
		twice := event(1, "pack")
		twice.DedupeKey = "another"
		s.receive(event(1, "arrive"), event(1, "send"))
		require.Equal(s, inbox.Done{Rejected: 2}, s.process())
		require.Equal(s, inbox.Done{}, s.process(), "nothing has moved")
		s.insert(1)
		require.Equal(s, inbox.Done{Rejected: 2}, s.process(), "now its row is there")
		require.Equal(s, inbox.Done{}, s.process())
		require.Equal(s, "0", s.text("SELECT count(*) FROM labels"), "what was written before a rejection is undone")

		s.receive(event(1, "pack"), twice)
		require.Equal(s, inbox.Done{Applied: 3, Duplicate: 1, Rejected: 1}, s.process())
		require.Equal(s, "THERE 3", s.text("SELECT state || ' ' || version FROM parcels"))
		require.Equal(s, "4", s.text("SELECT count(*) FROM labels"))
		s.receive(event(1, "lose"))
		require.Equal(s, inbox.Done{Duplicate: 1}, s.process(), "it rests")

		// Another one's move wakes it too.
		s.insert(2)
		s.receive(event(2, "send"))
		require.Equal(s, inbox.Done{Rejected: 1}, s.process())
		_, err := s.parcels.Move(s.Context(), guard.Request{ID: 2, Move: "pack"})
		require.NoError(s, err)
		require.Equal(s, inbox.Done{Applied: 1}, s.process())

		n, err := s.Forget(s.Context(), time.Hour, 10)
		require.NoError(s, err)
		require.Zero(s, n)
		n, err = s.Forget(s.Context(), 0, 3)
		require.NoError(s, err)
		require.Equal(s, 3, n)
	})
}

func TestAnEventIsDeadAfterTooManyOffersInVain(t *testing.T) {
	each(t, inbox.Options{MaxOffers: 2}, func(s *scene) {
		s.insert(1)
		s.receive(event(1, "arrive"))
		require.Equal(s, inbox.Done{Rejected: 1}, s.process())
		s.receive(event(1, "pack"))
		require.Equal(s, inbox.Done{Applied: 1, Rejected: 1, Dead: 1}, s.process())
		require.Len(s, s.dead, 1)
		require.ErrorContains(s, s.dead[0].Err, "it is PACKED, allowed from [SENT]")
		s.dead[0].Err = nil
		list, err := s.Dead(s.Context(), "parcels", 10)
		require.NoError(s, err)
		require.Len(s, list, 1)
		require.Equal(s, core.EventDead{Machine: "parcel", Topic: "parcels", ID: list[0].ID, Subject: 1, Offers: 2}, s.dead[0])
		require.Contains(s, list[0].LastError, "allowed from [SENT]")
		require.WithinDuration(s, time.Now(), list[0].DeadAt, time.Hour)

		_, err = s.parcels.Move(s.Context(), guard.Request{ID: 1, Move: "send"})
		require.NoError(s, err)
		require.Equal(s, inbox.Done{}, s.process(), "it is dead")
		answer, err := s.Revive(s.Context(), list[0].ID, "me", "mended")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		none, err := inbox.NewEvents(s.db, repository.DefaultPrefix).Dead(s.Context(), "", 10)
		require.NoError(s, err)
		require.Empty(s, none)
		answer, err = s.Revive(s.Context(), list[0].ID, "me", "mended")
		require.NoError(s, err)
		require.Equal(s, core.Duplicate, answer)
		_, err = s.Revive(s.Context(), 99, "me", "mended")
		require.ErrorIs(s, err, core.ErrNotFound)
		require.Equal(s, inbox.Done{Applied: 1}, s.process())
	})
}

func TestAnEventIsDeadWhenItIsTooOld(t *testing.T) {
	each(t, inbox.Options{TTL: time.Nanosecond}, func(s *scene) {
		s.insert(1)
		s.receive(event(1, "arrive"))
		require.Eventually(s, func() bool { return s.process().Dead == 1 || s.text("SELECT count(*) FROM labels") != "0" }, 10*time.Second, time.Millisecond)
		require.Len(s, s.dead, 1)
	})
}

func TestAHandlerThatFailsStopsNoOtherEvent(t *testing.T) {
	each(t, inbox.Options{Backoff: time.Hour}, func(s *scene) {
		bad := event(3, "pack")
		bad.Payload = json.RawMessage(`{}`)
		s.insert(1)
		s.insert(2)
		s.insert(3)
		s.receive(event(1, "pack"), event(2, "pack"), bad)
		done, err := s.Process(s.Context(), "parcels", func(ctx context.Context, e inbox.Event) (guard.Result[state], error) {
			result, err := s.handle(ctx, e)
			if e.Subject == 1 {
				panic("no")
			}
			return result, err
		})
		require.ErrorContains(s, err, "panic: no")
		require.ErrorContains(s, err, "cannot unmarshal")
		require.Equal(s, inbox.Done{Applied: 1, Failed: 2, Dead: 1}, done, "a fatal error is the end of it")
		require.Equal(s, "NEW", s.text("SELECT state FROM parcels WHERE id = 1"), "what it did is undone")

		s.insert(4)
		s.receive(event(4, "pack"))
		done, err = s.Process(s.Context(), "parcels", func(context.Context, inbox.Event) (guard.Result[state], error) {
			return guard.Result[state]{}, errors.New("not now")
		})
		require.ErrorContains(s, err, "not now")
		require.Equal(s, inbox.Done{Failed: 1}, done)
		require.Equal(s, inbox.Done{}, s.process(), "its time has not come")
		done, err = s.Process(s.Context(), "other", s.handle)
		require.NoError(s, err)
		require.Zero(s, done)
	})
}

func TestAnEventThatCannotBeCommittedStopsNoOther(t *testing.T) {
	each(t, inbox.Options{MaxOffers: 2, Backoff: time.Nanosecond}, func(s *scene) {
		if s.db.Dialect() == tx.MySQL {
			return // it has no deferred constraints
		}
		s.insert(1)
		s.insert(2)
		s.exec("CREATE TABLE places (parcel bigint NOT NULL REFERENCES parcels (id) DEFERRABLE INITIALLY DEFERRED)")
		s.receive(event(1, "pack"), event(2, "pack"))
		done, err := s.Process(s.Context(), "parcels", func(ctx context.Context, e inbox.Event) (guard.Result[state], error) {
			if e.Subject == 1 {
				if _, err := tx.ConnOf(ctx, s.db).ExecContext(ctx, "INSERT INTO places VALUES (99)"); err != nil {
					return guard.Result[state]{}, err
				}
			}
			return s.handle(ctx, e)
		})
		require.Error(s, err)
		require.Equal(s, inbox.Done{Applied: 1, Failed: 2, Dead: 1}, done)
		require.Equal(s, "NEW", s.text("SELECT state FROM parcels WHERE id = 1"))
		require.Equal(s, "1", s.text("SELECT count(*) FROM labels"))
		require.Len(s, s.dead, 1)
	})
}
