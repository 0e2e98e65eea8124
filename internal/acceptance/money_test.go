package acceptance

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const moneyJob = `
job: money
types:
  payment: {id: int, account: string, amount: {type: decimal, scale: 2}}
flow:
- step: create
  tasklet: {sql: {statement: "create table if not exists payment (id bigint primary key, account text not null, amount decimal(15,2) not null)"}}
- step: load
  chunk:
    size: 500
    reader: {csv: {path: payments.csv, item: payment}}
    processor: {map: {fee: "round(item.amount * 0.0125, 2, 'half_even')"}}
    writer: {table: {name: payment, columns: {id: id, account: account, amount: amount}}}
- step: export
  chunk:
    size: 500
    reader: {query: {sql: "select id, account, amount from payment", key: [id], item: payment}}
    processor: {map: {fee: "round(item.amount * 0.0125, 2, 'half_even')"}}
    writer:
      fixed:
        path: payments.txt
        record: D
        columns: {id: {at: 2-9, pad: "0"}, account: 10-21, amount: {at: 22-34, pad: "0", decimals: 2}, fee: {at: 35-45, pad: "0", decimals: 2}}
        trailer: {begins: T, count: 2-9, sums: {amount: 10-27, fee: 28-42}}
  expect: written == steps.load.written
`

func TestMoneyIsExactThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	payments := 20_000
	if isSoak() {
		payments = 1_000_000
	}
	inTurn(t, 0, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"money.yaml": moneyJob})
		kills, random := killsOf(t, 60, 20, 11)
		amount, fee := writePayments(t, filepath.Join(s.dir, "payments.csv"), payments, random)
		for done := false; !done; kills-- {
			p := s.start("run", "money.yaml")
			if kills > 0 {
				p.await([]string{"step=load", "step=export"}[kills%2])
				if !p.waitFor(time.Duration(random.IntN(300)) * time.Millisecond) {
					p.signal(syscall.SIGKILL)
				}
			}
			code, out := p.wait()
			done = isComplete(code, out)
			require.True(t, done || code == -1, out)
		}
		db, _ := s.open()
		require.Equal(t, []int64{int64(payments), amount}, s.ints(db, "select count(*), sum(cast(round(amount * 100) as bigint)) from payment", 2))
		s.assertMoney("payments.txt", payments, amount, fee)
	})
}

func writePayments(t *testing.T, path string, payments int, random *rand.Rand) (amount, fee int64) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "id,account,amount")
	for id := range payments {
		cents := random.Int64N(10_000_000_00)
		fmt.Fprintf(w, "%d,DE%010d,%d.%02d\n", id+1, random.IntN(1_000_000_000), cents/100, cents%100)
		amount += cents
		fee += feeOf(cents)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return amount, fee
}

// feeOf is 1.25 % of cents, a half rounded to the even cent.
func feeOf(cents int64) int64 {
	const parts = 10_000
	whole, rest := cents*125/parts, cents*125%parts
	if rest > parts/2 || rest == parts/2 && whole%2 == 1 {
		whole++
	}
	return whole
}

func (s *scene) assertMoney(name string, payments int, amount, fee int64) {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	defer f.Close() //nolint:errcheck // only read
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(s.t, err)
		return n
	}
	records, amounts, fees, last := 0, int64(0), int64(0), ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if last = lines.Text(); strings.HasPrefix(last, "D") {
			records++
			require.Equal(s.t, int64(records), number(last[1:9]), "each payment once, in its order")
			amounts, fees = amounts+number(last[21:34]), fees+number(last[34:45])
		}
	}
	require.Equal(s.t, payments, records)
	require.Equal(s.t, []int64{amount, fee}, []int64{amounts, fees})
	require.Equal(s.t, fmt.Sprintf("T%08d%018d%015d", payments, amount, fee), last)
	s.t.Logf("%d payments, %d cents, %d cents of fees", payments, amount, fee)
}
