//test:plain

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	if url := os.Getenv(childURL); url != "" {
		os.Exit(child(url))
	}
	os.Exit(testdb.Main(m))
}

// scene is a café on a database of its own.
type scene struct {
	testing.TB
	*Shop
	app *batch.App
	mux *http.ServeMux
	url string
	n   int
}

func each(t *testing.T, f func(s *scene)) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) { f(open(t, url)) })
}

func settings(url string) (batch.Settings, error) {
	s, err := batch.LoadSettings()
	s.AutoMigrate = "true"
	s.Lease, s.Heartbeat = 6*time.Second, time.Second // the work of a killed process is free again
	d := s.Databases[tx.Default]
	d.URL = url
	s.Databases[tx.Default] = d
	return s, err
}

func open(t testing.TB, url string, more ...fx.Option) *scene {
	t.Helper()
	conf, err := settings(url)
	require.NoError(t, err)
	s := &scene{TB: t, url: url}
	app := fx.New(append(more, fx.NopLogger, shop(conf), fx.Populate(&s.Shop, &s.app, &s.mux))...)
	require.NoError(t, app.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, app.Stop(context.WithoutCancel(t.Context()))) })
	return s
}

func (s *scene) exec(statement string, args ...any) {
	s.Helper()
	_, err := s.db.Conn().ExecContext(s.Context(), s.db.Dialect().Bind(statement), args...)
	require.NoError(s, err)
}

func (s *scene) number(query string, args ...any) (n int64) {
	s.Helper()
	require.NoError(s, s.row(s.Context(), query, args...).Scan(&n))
	return n
}

// order places an order for two coffees, and puts it into a state as if nothing else had happened.
func (s *scene) order(state State) int64 {
	s.Helper()
	s.n++
	o, placed, err := s.Place(s.Context(), fmt.Sprintf("order %d", s.n), Order{Item: "coffee", Quantity: 2})
	require.NoError(s, err)
	require.True(s, placed)
	s.exec("UPDATE orders SET state = ? WHERE id = ?", string(state), o.ID)
	return o.ID
}

func (s *scene) state(id int64) State {
	s.Helper()
	o, err := s.Order(s.Context(), id)
	require.NoError(s, err)
	return o.Status
}

// tasksOf returns the types of the tasks for an order, sorted.
func (s *scene) tasksOf(id int64) (types []string) {
	s.Helper()
	list, err := s.tasks.Tasks(s.Context(), task.Filter{Limit: 1000})
	require.NoError(s, err)
	for _, one := range list {
		if string(one.Spec.Payload) == fmt.Sprintf(`{"order":%d}`, id) {
			types = append(types, one.Spec.Type)
		}
	}
	slices.Sort(types)
	return types
}

func (s *scene) call(method, path, key, body string) (int, answer) {
	s.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(s.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	s.mux.ServeHTTP(w, r)
	var a answer
	require.NoError(s, json.Unmarshal(w.Body.Bytes(), &a), w.Body.String())
	return w.Code, a
}

// The specification: the result of each trigger in each state. a: applied, d: duplicate, r: rejected.
const spec = `
                      Created StockReserved PaymentPending Paid Completed Cancelled Failed
StockReserveSucceeded a       d             d              d    d         d         d
StockReserveFailed    a       r             r              r    d         d         d
PaymentRequested      r       a             d              d    d         d         d
PaymentSucceeded      r       r             a              d    d         d         d
PaymentFailed         r       r             a              r    d         d         d
HandoverCompleted     r       r             r              a    d         d         d
CancelRequested       a       a             a              r    d         d         d
`

func TestEveryStateTakesEveryTriggerOnce(t *testing.T) {
	each(t, func(s *scene) {
		answers := map[string]core.Answer{"a": core.Applied, "d": core.Duplicate, "r": core.Rejected}
		rows := strings.Split(strings.TrimSpace(spec), "\n")
		states := strings.Fields(rows[0])
		require.Len(s, states, 7)
		require.Len(s, rows[1:], len(s.orders.Machine().Moves()), "every trigger has a row")
		for _, row := range rows[1:] {
			fields := strings.Fields(row)
			trigger := Trigger(fields[0])
			for i, state := range states {
				about := fmt.Sprintf("%s in %s", trigger, state)
				id := s.order(State(state))
				want := answers[fields[i+1]]
				got, err := s.Apply(s.Context(), id, trigger)
				require.Equal(s, want, got.Answer, about)
				require.Equal(s, want == core.Rejected, err != nil, about)
				after, effects, stock := s.state(id), s.tasksOf(id), s.number("SELECT quantity FROM stock WHERE item = 'coffee'")
				if want == core.Applied {
					require.Equal(s, s.orders.Machine().Move(string(trigger)).To, after, about)
					want = core.Duplicate
				} else {
					require.Equal(s, State(state), after, about)
				}

				got, err = s.Apply(s.Context(), id, trigger) // it comes twice
				require.Equal(s, want, got.Answer, about)
				require.Equal(s, want == core.Rejected, err != nil, about)
				require.Equal(s, after, s.state(id), about)
				require.Equal(s, effects, s.tasksOf(id), about)
				require.Equal(s, stock, s.number("SELECT quantity FROM stock WHERE item = 'coffee'"), about)
			}
		}
	})
}

func TestWhatBelongsToAMoveHappensOnce(t *testing.T) {
	each(t, func(s *scene) {
		coffee := func() int64 { return s.number("SELECT quantity FROM stock WHERE item = 'coffee'") }
		apply := func(id int64, triggers ...Trigger) {
			for _, trigger := range triggers {
				for range 2 {
					_, err := s.Apply(s.Context(), id, trigger)
					require.NoError(s, err, trigger)
				}
			}
		}
		id := s.order(Created)
		apply(id, StockReserveSucceeded)
		require.EqualValues(s, 998, coffee())
		apply(id, PaymentRequested, PaymentSucceeded)
		require.Equal(s, []string{taskNotify}, s.tasksOf(id))
		apply(id, HandoverCompleted)
		require.EqualValues(s, 998, coffee())
		require.Equal(s, []string{taskNotify}, s.tasksOf(id))

		id = s.order(Created)
		apply(id, StockReserveSucceeded, PaymentRequested, CancelRequested)
		require.EqualValues(s, 998, coffee(), "the stock is back")
		require.Equal(s, []string{taskReverse}, s.tasksOf(id))
		apply(id, PaymentSucceeded)
		require.Equal(s, []string{taskRefund, taskReverse}, s.tasksOf(id))
		require.Equal(s, Cancelled, s.state(id))

		id = s.order(Created)
		apply(id, StockReserveSucceeded, CancelRequested)
		require.EqualValues(s, 998, coffee())
		require.Empty(s, s.tasksOf(id), "nobody was asked to pay")

		id = s.order(Created)
		apply(id, StockReserveSucceeded, PaymentRequested, PaymentFailed)
		require.EqualValues(s, 998, coffee())
		apply(id, PaymentSucceeded)
		require.Equal(s, []string{taskRefund}, s.tasksOf(id))

		s.exec("UPDATE stock SET quantity = 1 WHERE item = 'coffee'")
		id = s.order(Created)
		_, err := s.Apply(s.Context(), id, StockReserveSucceeded)
		require.ErrorIs(s, err, ErrSoldOut)
		require.Equal(s, Created, s.state(id), "the move is undone with it")
	})
}

func TestTheAPIAnswersASecondCallAsTheFirst(t *testing.T) {
	each(t, func(s *scene) {
		code, placed := s.call("POST", "/orders", "k", `{"item": "cake", "quantity": 1}`)
		require.Equal(s, http.StatusCreated, code)
		require.Equal(s, answer{ID: placed.ID, Status: Created, Applied: true}, placed)
		code, again := s.call("POST", "/orders", "k", `{"item": "cake", "quantity": 1}`)
		require.Equal(s, http.StatusOK, code)
		require.Equal(s, answer{ID: placed.ID, Status: Created}, again)
		for body, want := range map[string]int{`{"item": "cake", "quantity": 2}`: http.StatusConflict, `{"item": "cake"}`: http.StatusBadRequest, `{`: http.StatusBadRequest} {
			code, _ = s.call("POST", "/orders", "k", body)
			require.Equal(s, want, code, body)
		}
		code, _ = s.call("POST", "/orders", "", `{"item": "cake", "quantity": 1}`)
		require.Equal(s, http.StatusBadRequest, code)

		path := fmt.Sprintf("/orders/%d/", placed.ID)
		for _, c := range []struct {
			path string
			code int
			want answer
		}{
			{path + "payment-succeeded", 409, answer{Status: Created}},
			{path + "stock-reserve-succeeded", 200, answer{Status: StockReserved, Applied: true}},
			{path + "stock-reserve-succeeded", 200, answer{Status: StockReserved}},
			{path + "payment-requested", 200, answer{Status: PaymentPending, Applied: true}},
			{path + "payment-succeeded", 200, answer{Status: Paid, Applied: true}},
			{path + "payment-succeeded", 200, answer{Status: Paid}},
			{path + "cancel-requested", 409, answer{Status: Paid}},
			{path + "fly", 404, answer{}},
			{"/orders/99/payment-succeeded", 404, answer{}},
			{"/orders/x/payment-succeeded", 404, answer{}},
		} {
			code, got := s.call("POST", c.path, "", "")
			require.Equal(s, c.code, code, c.path)
			require.Equal(s, code != 200, got.Error != "", c.path)
			require.Equal(s, c.want, answer{Status: got.Status, Applied: got.Applied}, c.path)
		}
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), http.MethodGet, "/metrics", nil))
		for _, counted := range []string{`result="applied",trigger="PaymentSucceeded"`, `result="duplicate",trigger="PaymentSucceeded"`, `result="rejected",trigger="CancelRequested"`} {
			require.Contains(s, w.Body.String(), `surfin_transitions_total{machine="order",`+counted+"} 1\n")
		}
		code, _ = s.call("GET", "/orders/99", "", "")
		require.Equal(s, http.StatusNotFound, code)
		code, got := s.call("GET", path[:len(path)-1], "", "")
		require.Equal(s, []any{http.StatusOK, Paid}, []any{code, got.Status})

		event := fmt.Sprintf(`{"key": "e", "order": %d, "trigger": "HandoverCompleted"}`, placed.ID)
		for range 2 {
			code, _ = s.call("POST", "/events", "", event)
			require.Equal(s, http.StatusAccepted, code)
		}
		code, _ = s.call("POST", "/events", "", strings.Replace(event, "Handover", "Landing", 1))
		require.Equal(s, http.StatusBadRequest, code)
		_, err := s.Process(s.Context())
		require.NoError(s, err)
		require.Equal(s, Completed, s.state(placed.ID))
	})
}

func TestManyCallersApplyAMoveOnce(t *testing.T) {
	each(t, func(s *scene) {
		id := s.order(PaymentPending)
		var mu sync.Mutex
		applied := 0
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				code, got := s.call("POST", fmt.Sprintf("/orders/%d/payment-succeeded", id), "", "")
				mu.Lock()
				defer mu.Unlock()
				if code != http.StatusOK || got.Status != Paid {
					s.Errorf("%d %+v", code, got)
				}
				if got.Applied {
					applied++
				}
			})
		}
		wg.Wait()
		require.Equal(s, 1, applied)
		require.Equal(s, []string{taskNotify}, s.tasksOf(id))
	})
}

func TestTheCafeWorksThroughADay(t *testing.T) {
	t.Chdir(t.TempDir())
	testdb.Each(t, func(t *testing.T, url string) {
		s := open(t, url, fx.Invoke(background))
		id, late := s.order(PaymentPending), s.order(PaymentPending)
		for i, e := range []struct {
			id      int64
			trigger Trigger
		}{{id, HandoverCompleted}, {id, PaymentSucceeded}, {late, CancelRequested}, {late, PaymentSucceeded}} {
			_, err := s.Receive(s.Context(), fmt.Sprint(i), e.id, e.trigger)
			require.NoError(s, err)
		}
		require.Eventually(s, func() bool { return s.number("SELECT count(*) FROM ledger") == 3 && s.state(id) == Completed }, 30*time.Second, 10*time.Millisecond)
		require.EqualValues(s, 1, s.number("SELECT count(*) FROM ledger WHERE entry = 'notify' AND order_id = ?", id))
		require.EqualValues(s, 2, s.number("SELECT count(*) FROM ledger WHERE entry IN ('refund', 'reverse_payment') AND order_id = ?", late))

		s.exec("UPDATE orders SET completed_on = '2026-11-22' WHERE id = ?", id)
		e, err := s.app.Run(s.Context(), batch.RunRequest{Name: "campuscafe_nightly", Params: map[string]string{"day": "2026-11-22"}})
		require.NoError(s, err)
		require.Equal(s, core.StatusCompleted, e.Status)
		text, err := os.ReadFile(filepath.Join("out", "completed_2026-11-22.csv"))
		require.NoError(s, err)
		require.Equal(s, fmt.Sprintf("id,item,quantity\n%d,coffee,2\n", id), string(text))
	})
}
