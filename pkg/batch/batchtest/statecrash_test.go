package batchtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

type entry struct {
	ID      int64 `json:"id"`
	Amount  int64 `json:"amount"`
	Balance int64 `json:"balance"`
}

type balance struct{ sum int64 }

func (p *balance) Open(_ context.Context, at batch.Position) error {
	p.sum = 0
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &p.sum)
}

func (p *balance) Position() (batch.Position, error) { return json.Marshal(p.sum) }

// Process adds the entry before it checks it.
func (p *balance) Process(_ context.Context, e entry) (entry, error) {
	p.sum += e.Amount
	switch {
	case e.Amount == 0:
		return e, batch.ErrFilter
	case e.Amount < 0:
		return e, batch.InvalidItem(errors.New("a negative amount"))
	}
	e.Balance = p.sum
	return e, nil
}

func balances() []fx.Option {
	return []fx.Option{
		batch.Item[entry]("entry"),
		batch.Processor[entry, entry]("balance", func() *balance { return &balance{} }),
	}
}

const balanceJob = `
job: balance
parameters:
  input: {type: path}
flow:
- step: load
  PARTITION
  chunk:
    size: 4
    read_ahead: AHEAD
    skip: {limit: 100, errors: [invalid_item, constraint]}
    reader: {csv: {path: "${params.input}", item: entry}}
    processor: balance
    writer: {table: entries}
`

func entries(first, n int) (file string, balanced []string) {
	var b strings.Builder
	b.WriteString("id,amount,balance\n")
	sum := 0
	for i := first; i < first+n; i++ {
		id, amount := i, i*10
		switch i % 10 {
		case 3:
			amount = -5
		case 5:
			amount = 0
		case 7:
			id = i - 1 // a duplicate
		default:
			sum += amount
			balanced = append(balanced, fmt.Sprintf("%d|%d", id, sum))
		}
		fmt.Fprintf(&b, "%d,%d,0\n", id, amount)
	}
	return b.String(), balanced
}

// Rule C4a.
func TestAProcessorWithAPositionSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]*strings.Replacer{
		"plain":         strings.NewReplacer("PARTITION", "", "AHEAD", "false"),
		"reading ahead": strings.NewReplacer("PARTITION", "", "AHEAD", "true"),
		"partitioned":   strings.NewReplacer("PARTITION", `partition: {by: {files: "in*.csv"}, workers: 2}`, "AHEAD", "true", "${params.input}", "${part.path}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(c *batchtest.Crash) {
				c.Job = c.Path("load.yaml")
				c.Params = []string{"input=" + c.Path("in1.csv")}
				c.Options = balances()
				var want []string
				files := map[string]string{}
				for part, first := range map[string]int{"in1.csv": 100, "in2.csv": 200} {
					if part == "in1.csv" || name == "partitioned" {
						file, rows := entries(first, 20)
						files[part], want = file, append(want, rows...)
					}
				}
				c.Setup = func(_ *testing.T, e *batchtest.Env) {
					e.File("load.yaml", with.Replace(balanceJob))
					for part, file := range files {
						e.File(part, file)
					}
					e.Exec("create table entries (id bigint primary key, amount bigint, balance bigint)")
				}
				c.Check = func(t *testing.T, e *batchtest.Env) {
					require.ElementsMatch(t, want, e.Rows("select id, balance from entries order by id"))
				}
			})
		})
	}
}

func TestConcurrencyWithAProcessorWithAPositionIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t, batchtest.With(balances()...))
	for key, want := range map[string]string{
		"concurrency: 4":   "concurrency and the processor balance, which has a position, exclude each other",
		"reprocess: false": "reprocess: false and the processor balance, which has a position, exclude each other",
	} {
		file := e.File("load.yaml", strings.NewReplacer("PARTITION", "", "read_ahead: AHEAD", key).Replace(balanceJob))
		_, err := e.Launch(file, "input="+e.File("in.csv", "id,amount,balance\n"))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "load.yaml:10:5")
	}
}
