package guard_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A test binary with payerURL in its environment is a payer. With payerHangs as well it stops in
// the transaction of its fourth payment, before the commit.
const (
	payerURL   = "SURFIN_TEST_GUARD_URL"
	payerHangs = "SURFIN_TEST_GUARD_HANGS"
)

// payer is a process that receives each payment twice, like other processes, and writes it into the
// ledger in a transaction of its own with the move.
func payer(url string) int {
	if err := payAll(context.Background(), url); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func payAll(ctx context.Context, url string) (err error) {
	pool, err := openPool(url)
	if err != nil {
		return err
	}
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: url}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close(), pool.Close()) }()
	db, err := provider.Database(tx.Default)
	if err != nil {
		return err
	}
	ids, err := orderIDs(ctx, pool)
	if err != nil {
		return err
	}
	orders, left := guard.NewTable(db, "orders", orderMachine(), nil, entityColumns), 3
	for _, id := range append(ids, ids...) {
		paid, err := pay(ctx, pool, orders, id, left == 0 && os.Getenv(payerHangs) != "")
		if err != nil {
			return err
		}
		if paid {
			left--
		}
	}
	return nil
}

func orderIDs(ctx context.Context, pool *sql.DB) (ids []string, err error) {
	rows, err := pool.QueryContext(ctx, "SELECT order_id FROM orders")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids, rows.Err()
}

func pay(ctx context.Context, pool *sql.DB, orders *guard.Table[orderStatus], id string, hang bool) (bool, error) {
	own, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	joined, ended, err := tx.Join(ctx, orders.Database(), own)
	if err != nil {
		return false, err
	}
	got, err := orders.Move(joined, guard.Request{Key: id, Move: "PaymentSucceeded"})
	if err != nil {
		return false, err
	}
	if got.Answer == core.Applied {
		if _, err := own.ExecContext(ctx, "INSERT INTO ledger (order_id) VALUES ($1)", id); err != nil {
			return false, err
		}
		if hang {
			fmt.Println("hangs")
			select {}
		}
	}
	err = own.Commit()
	ended(err == nil)
	return got.Answer == core.Applied, err
}

func TestEachMoveIsMadeOnceByProcessesOfWhichOneIsKilled(t *testing.T) {
	t.Parallel()
	const orders = 60
	eachShop(t, func(t *testing.T, s *shop) {
		_, err := s.pool.ExecContext(t.Context(), "CREATE TABLE ledger (order_id text NOT NULL)")
		require.NoError(t, err)
		for range orders {
			s.order(t, paymentPending)
		}
		start := func(env ...string) (*exec.Cmd, *bufio.Scanner) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(append(os.Environ(), payerURL+"="+s.url), env...)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			return cmd, bufio.NewScanner(out)
		}
		mortal, said := start(payerHangs + "=1")
		require.True(t, said.Scan(), "it ended")
		require.Equal(t, "hangs", said.Text())
		other, otherSaid := start()
		require.NoError(t, mortal.Process.Kill())
		require.Error(t, mortal.Wait())
		again, againSaid := start()
		for cmd, out := range map[*exec.Cmd]*bufio.Scanner{other: otherSaid, again: againSaid} {
			require.False(t, out.Scan(), out.Text())
			require.NoError(t, cmd.Wait())
		}
		var entries, distinct, done int
		require.NoError(t, s.pool.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT order_id) FROM ledger").Scan(&entries, &distinct))
		require.NoError(t, s.pool.QueryRowContext(t.Context(), "SELECT count(*) FROM orders WHERE status = $1", int(paid)).Scan(&done))
		require.Equal(t, []int{orders, orders, orders}, []int{entries, distinct, done})
	})
}
