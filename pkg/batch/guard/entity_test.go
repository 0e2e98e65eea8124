package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	gormtests "gorm.io/gorm/utils/tests"
	_ "modernc.org/sqlite"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type orderStatus int

const (
	created orderStatus = iota
	stockReserved
	paymentPending
	paid
	completed
	cancelled
	failed
)

func (s orderStatus) String() string {
	return []string{"Created", "StockReserved", "PaymentPending", "Paid", "Completed", "Cancelled", "Failed"}[s]
}

// orderMachine is the table of source 002, and a release of the stock, which is a circle.
func orderMachine() core.Machine[orderStatus] {
	m, err := core.NewMachine("order",
		core.Move[orderStatus]{Name: "StockReserveSucceeded", From: []orderStatus{created}, To: stockReserved, Intent: core.IntentBegin},
		core.Move[orderStatus]{Name: "StockReleased", From: []orderStatus{stockReserved}, To: created, Intent: core.IntentRelease},
		core.Move[orderStatus]{Name: "StockReserveFailed", From: []orderStatus{created}, To: failed, Intent: core.IntentEnd},
		core.Move[orderStatus]{Name: "PaymentRequested", From: []orderStatus{stockReserved}, To: paymentPending, Intent: core.IntentBegin},
		core.Move[orderStatus]{Name: "PaymentSucceeded", From: []orderStatus{paymentPending}, To: paid, Intent: core.IntentBegin},
		core.Move[orderStatus]{Name: "PaymentFailed", From: []orderStatus{paymentPending}, To: failed, Intent: core.IntentEnd},
		core.Move[orderStatus]{Name: "HandoverCompleted", From: []orderStatus{paid}, To: completed, Intent: core.IntentEnd},
		core.Move[orderStatus]{Name: "CancelRequested", From: []orderStatus{created, stockReserved, paymentPending}, To: cancelled, Intent: core.IntentEnd})
	if err != nil {
		panic(err)
	}
	return m
}

var entityColumns = guard.WithColumns(guard.Columns{Key: "order_id", State: "status"})

type shop struct {
	url    string
	db     tx.Database
	pool   *sql.DB
	orders *guard.Table[orderStatus]
	heard  []core.Transitioned
}

// eachShop runs f with the entity of source 002: a UUID, a number and a time, on either database.
func eachShop(t *testing.T, f func(t *testing.T, s *shop), opts ...guard.Option) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &shop{url: url}
		s.open(t, url, opts...)
		id := "uuid"
		if s.db.Dialect() == tx.SQLite {
			id = "text"
		}
		_, err := s.pool.ExecContext(t.Context(), "CREATE TABLE orders (order_id "+id+" PRIMARY KEY, status int NOT NULL, updated_at_utc text NOT NULL DEFAULT '')")
		require.NoError(t, err)
		f(t, s)
	})
}

// openPool opens a pool like an application's own.
func openPool(url string) (*sql.DB, error) {
	if file, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sql.Open("sqlite", file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(20000)&_txlock=immediate")
	}
	return sql.Open("pgx", url)
}

func (s *shop) open(t testing.TB, url string, opts ...guard.Option) {
	t.Helper()
	var err error
	s.pool, err = openPool(url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.pool.Close()) })
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	s.db, err = provider.Database(tx.Default)
	require.NoError(t, err)
	observer := core.ObserverFunc(func(_ context.Context, e core.Event) { s.heard = append(s.heard, e.(core.Transitioned)) })
	s.orders = guard.NewTable(s.db, "orders", orderMachine(), observer, append([]guard.Option{entityColumns}, opts...)...)
}

const insertOrder = "INSERT INTO orders (order_id, status) VALUES ($1, $2)"

func (s *shop) order(t testing.TB, status orderStatus) uuid.UUID {
	t.Helper()
	id := uuid.New()
	_, err := s.pool.ExecContext(t.Context(), insertOrder, id, int(status))
	require.NoError(t, err)
	return id
}

func (s *shop) status(t testing.TB, id uuid.UUID) orderStatus {
	t.Helper()
	var status orderStatus
	require.NoError(t, s.pool.QueryRowContext(t.Context(), "SELECT status FROM orders WHERE order_id = $1", id).Scan(&status))
	return status
}

func TestTheEntityOfAnApplicationMovesAsItIs(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for _, c := range []struct {
			found, now orderStatus
			move       string
			want       core.Answer
			early      bool
		}{
			{paymentPending, paid, "PaymentSucceeded", core.Applied, false},
			{paid, paid, "PaymentSucceeded", core.Duplicate, false},
			{completed, completed, "PaymentSucceeded", core.Duplicate, false},
			{completed, completed, "CancelRequested", core.Duplicate, false},
			{cancelled, cancelled, "HandoverCompleted", core.Duplicate, false},
			{paid, paid, "StockReserveSucceeded", core.Duplicate, false},
			{paid, paid, "StockReleased", core.Duplicate, false},
			{stockReserved, stockReserved, "StockReserveSucceeded", core.Duplicate, false},
			{stockReserved, created, "StockReleased", core.Applied, false},
			{created, created, "HandoverCompleted", core.Rejected, true},
			{created, created, "PaymentRequested", core.Rejected, true},
			{paid, paid, "CancelRequested", core.Rejected, false},
			{paid, paid, "PaymentFailed", core.Rejected, false},
			{created, cancelled, "CancelRequested", core.Applied, false},
			{paymentPending, cancelled, "CancelRequested", core.Applied, false},
		} {
			id := s.order(t, c.found)
			s.heard = nil
			got, err := s.orders.Move(t.Context(), guard.Request{Key: id, Move: c.move, Set: []guard.Assignment{guard.Set("updated_at_utc", "now")}})
			about := fmt.Sprintf("%s of %v", c.move, c.found)
			require.Equal(t, guard.Result[orderStatus]{Answer: c.want, Current: c.found, State: c.now}, got, about)
			require.Equal(t, c.now, s.status(t, id), about)
			require.Equal(t, []core.Transitioned{{
				Machine: "order", Move: c.move, Trigger: c.move, Key: id.String(), To: s.heard[0].To, Current: core.Status(c.found.String()), Answer: c.want, Early: c.early,
			}}, s.heard, about)
			if c.want == core.Rejected {
				require.ErrorContains(t, err, fmt.Sprintf("order %s: transition to %s refused: it is %s", id, s.heard[0].To, c.found))
			} else {
				require.NoError(t, err, about)
			}
		}
	})
}

func TestARequestThatDoesNotFitTheColumnsIsRefused(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		id := s.order(t, created)
		_, err := s.orders.Move(t.Context(), guard.Request{ID: 7, Move: "CancelRequested"})
		require.ErrorContains(t, err, "select the row by Request.Key, not by ID")
		_, err = s.orders.Move(t.Context(), guard.Request{Key: id, Epoch: 1, Move: "CancelRequested"})
		require.ErrorContains(t, err, "has no column for the epoch, but the request has epoch 1")
		_, err = s.orders.Move(t.Context(), guard.Request{Key: uuid.New(), Move: "CancelRequested"})
		require.ErrorIs(t, err, core.ErrNotFound)
		for _, c := range []struct {
			columns guard.Columns
			want    string
		}{
			{guard.Columns{Key: "order_id", State: "statuss"}, "statuss"}, // SQLite takes "statuss" for a text
			{guard.Columns{Key: "order_idd", State: "status"}, "order_idd"},
			{guard.Columns{ID: "id", Key: "order_id", State: "status"}, "a table has one key, but ID is id and Key is order_id"},
			{guard.Columns{LastEpoch: "last_epoch"}, "a key is required: ID for an integer, Key for another type\na column for the state is required: State\nLastEpoch (last_epoch) needs LastMove and Epoch"},
			{guard.Columns{Key: "order_id", State: "status", LastMove: "m", Epoch: "e"}, "LastMove (m) needs LastEpoch"},
		} {
			_, err = guard.NewTable(s.db, "orders", orderMachine(), nil, guard.WithColumns(c.columns)).Move(t.Context(), guard.Request{Key: id, Move: "CancelRequested"})
			require.ErrorContains(t, err, c.want)
		}
		_, err = guard.NewTable(s.db, "orders", orderMachine(), nil).Move(t.Context(), guard.Request{Key: id, Move: "CancelRequested"})
		require.ErrorContains(t, err, "or set Columns.Key")
		require.Equal(t, created, s.status(t, id))
	})
}

func TestManyRowsWithKeysOfTheirOwnMoveAtOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		want := map[string]bool{}
		for range 3 {
			want[s.order(t, paymentPending).String()] = true
		}
		s.order(t, paid)
		moved, err := s.orders.MoveAll(t.Context(), guard.Bulk{Move: "PaymentFailed", Limit: 10})
		require.NoError(t, err)
		require.Len(t, moved, 3)
		for i, m := range moved {
			require.Equal(t, paymentPending, m.Before)
			require.Equal(t, m.Key, s.heard[i].Key)
			require.Equal(t, core.Status("PaymentPending"), s.heard[i].Current)
			require.True(t, want[s.heard[i].Key])
		}
	})
}

type within func(t *testing.T, s *shop, f func(ctx context.Context, exec func(query string, args ...any) error) error) error

func inGorm(prepare bool) within {
	return func(t *testing.T, s *shop, f func(context.Context, func(string, ...any) error) error) error {
		own, err := gorm.Open(gormtests.DummyDialector{}, &gorm.Config{ConnPool: s.pool, PrepareStmt: prepare})
		require.NoError(t, err)
		return gormdb.Transaction(t.Context(), s.db, own, func(ctx context.Context, session *gorm.DB) error {
			return f(ctx, func(query string, args ...any) error {
				_, err := session.Statement.ConnPool.ExecContext(ctx, query, args...)
				return err
			})
		})
	}
}

func inSQL(t *testing.T, s *shop, f func(context.Context, func(string, ...any) error) error) error {
	own, err := s.pool.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	ctx, ended, err := tx.Join(t.Context(), s.db, own)
	require.NoError(t, err)
	if err := f(ctx, func(query string, args ...any) error { _, err := own.ExecContext(ctx, query, args...); return err }); err != nil {
		require.NoError(t, own.Rollback())
		ended(false)
		return err
	}
	require.NoError(t, own.Commit())
	ended(true)
	return nil
}

func TestAMoveJoinsATransactionOfTheApplicationsOwn(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]within{"gorm": inGorm(false), "gorm with prepared statements": inGorm(true), "database/sql": inSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, func(t *testing.T, s *shop) {
				undone := errors.New("undone")
				for _, end := range []error{undone, nil} {
					id := uuid.New()
					err := in(t, s, func(ctx context.Context, exec func(string, ...any) error) error {
						require.NoError(t, exec(insertOrder, id, int(paymentPending)))
						got, err := s.orders.Move(ctx, guard.Request{Key: id, Move: "PaymentSucceeded"})
						require.NoError(t, err)
						require.Equal(t, core.Applied, got.Answer, "it sees what the application has written")
						got, err = s.orders.Move(ctx, guard.Request{Key: id, Move: "PaymentSucceeded"})
						require.NoError(t, err)
						require.Equal(t, core.Duplicate, got.Answer)
						require.Len(t, s.heard, 1, "an applied move is told when it is committed")
						_, err = s.orders.Move(ctx, guard.Request{Key: id, Move: "CancelRequested"})
						require.Error(t, err, "a rejection leaves the transaction as it is")
						s.heard = nil
						return end
					})
					require.ErrorIs(t, err, end)
					if end != nil {
						require.Empty(t, s.heard)
						_, err = s.orders.Move(t.Context(), guard.Request{Key: id, Move: "PaymentSucceeded"})
						require.ErrorIs(t, err, core.ErrNotFound)
						s.heard = nil
						continue
					}
					require.Len(t, s.heard, 1)
					require.Equal(t, core.Applied, s.heard[0].Answer)
					require.Equal(t, paid, s.status(t, id))
				}
			})
		})
	}
}

// On SQLite the transaction of the caller has the one writer, on PostgreSQL it
// has the row: a move that has not joined it would wait for ever.
func TestAMoveBesideTheTransactionOfItsCallerDoesNotWaitForIt(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		id := s.order(t, paymentPending)
		own, err := s.pool.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = own.ExecContext(t.Context(), "UPDATE orders SET updated_at_utc = 'x' WHERE order_id = $1", id)
		require.NoError(t, err)
		began := time.Now()
		_, err = s.orders.Move(t.Context(), guard.Request{Key: id, Move: "PaymentSucceeded"})
		require.ErrorContains(t, err, "if it is your own, join it (tx.Join, gormdb.Join)")
		require.Less(t, time.Since(began), 10*time.Second)
		require.Empty(t, s.heard)

		ctx, ended, err := tx.Join(t.Context(), s.db, own)
		require.NoError(t, err)
		got, err := s.orders.Move(ctx, guard.Request{Key: id, Move: "PaymentSucceeded"})
		require.NoError(t, err, "the transaction is as it was")
		require.Equal(t, core.Applied, got.Answer)
		require.NoError(t, own.Rollback())
		ended(false)
		require.Len(t, s.heard, 0)
		_, err = s.orders.Move(ctx, guard.Request{Key: id, Move: "PaymentSucceeded"})
		require.ErrorIs(t, err, sql.ErrTxDone, "the context is of no further use")
		require.Equal(t, paymentPending, s.status(t, id))
	}, guard.Wait(300*time.Millisecond))
}

func TestWhatCannotBeJoinedIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		own, err := gorm.Open(gormtests.DummyDialector{}, &gorm.Config{ConnPool: s.pool})
		require.NoError(t, err)
		_, _, err = gormdb.Join(t.Context(), s.db, own)
		require.ErrorContains(t, err, "gorm is not within a transaction (its connection is a *sql.DB)")
		_, _, err = tx.Join(t.Context(), s.db, nil)
		require.ErrorContains(t, err, "there is no transaction")
		failed := errors.New("joined work failed")
		err = gormdb.Transaction(t.Context(), s.db, own, func(ctx context.Context, session *gorm.DB) error {
			require.ErrorIs(t, gormdb.Transaction(ctx, s.db, session, nil), tx.ErrTransaction)
			_, _, err := gormdb.Join(ctx, s.db, session)
			require.ErrorIs(t, err, tx.ErrTransaction, "it is joined already")
			if s.db.SingleWriter() {
				err := tx.NewManager(s.db).Do(ctx, tx.Attr{Propagation: tx.RequiresNew}, func(context.Context) error { return nil })
				require.ErrorIs(t, err, tx.ErrSingleWriter)
			}
			require.ErrorIs(t, tx.NewManager(s.db).Do(ctx, tx.Attr{}, func(context.Context) error { return failed }), failed)
			return nil
		})
		require.ErrorIs(t, err, failed, "it is not committed though its failure was ignored")
	})
}
