package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// number is a state like an application's enumeration. Its text is its digits.
type number int

type model struct {
	moves []core.Move[number]
	leads [states][states]bool // over any number of moves
	exits [states]bool         // a move leads from the state
	known [states]bool
	marks bool // the table keeps the last move and the epoch

	state number
	epoch int64
	last  core.Mark
}

const states = 6

func newModel(moves []core.Move[number], marks bool, at number) *model {
	m := &model{moves: moves, marks: marks, state: at, epoch: 1}
	for _, mv := range moves {
		m.known[mv.To] = true
		for _, from := range mv.From {
			m.known[from], m.exits[from], m.leads[from][mv.To] = true, true, true
		}
	}
	for via := range states {
		for from := range states {
			for to := range states {
				m.leads[from][to] = m.leads[from][to] || m.leads[from][via] && m.leads[via][to]
			}
		}
	}
	return m
}

// ask applies rules SM2 and SM3, and makes the move.
func (m *model) ask(mv core.Move[number]) (answer core.Answer, early bool) {
	switch {
	case slices.Contains(mv.From, m.state):
		m.last, m.state = core.Mark{Move: mv.Name, Epoch: m.epoch}, mv.To
		if mv.Intent == core.IntentTake && m.marks {
			m.epoch++
		}
		return core.Applied, false
	case m.marks && m.last == core.Mark{Move: mv.Name, Epoch: m.epoch}:
		return core.Duplicate, false
	case !m.known[m.state]:
		return core.Rejected, false
	case !m.exits[m.state], m.state == mv.To, m.leads[mv.To][m.state] && !m.leads[m.state][mv.To]:
		return core.Duplicate, false
	}
	return core.Rejected, m.leads[m.state][mv.To]
}

func drawMoves(t *rapid.T) []core.Move[number] {
	state := rapid.Custom(func(t *rapid.T) number { return number(rapid.IntRange(0, states-1).Draw(t, "state")) })
	var moves []core.Move[number]
	for i := range rapid.IntRange(1, 8).Draw(t, "moves") {
		mv := core.Move[number]{Name: fmt.Sprintf("m%d", i), To: state.Draw(t, "to"), Intent: core.IntentBegin}
		mv.From = rapid.SliceOfNDistinct(state, 1, 3, rapid.ID).Draw(t, "from")
		if slices.Contains(mv.From, mv.To) || rapid.IntRange(0, 4).Draw(t, "takes") == 0 {
			mv.Intent = core.IntentTake
		}
		moves = append(moves, mv)
	}
	return moves
}

var bare = guard.Columns{Key: "code", State: "status"}

func TestEachAnswerOfARandomMachineIsThatOfTheModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		for _, statement := range []string{
			"CREATE TABLE bare (code text PRIMARY KEY, status int NOT NULL)",
			`CREATE TABLE whole (id bigint PRIMARY KEY, state int NOT NULL, state_before int NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0,
				epoch bigint NOT NULL DEFAULT 1, last_move text NOT NULL DEFAULT '', last_epoch bigint NOT NULL DEFAULT 0)`,
		} {
			_, err := db.Conn().ExecContext(t.Context(), ddl(db, statement))
			require.NoError(t, err)
		}
		var rows atomic.Int64
		rapid.Check(t, func(rt *rapid.T) {
			moves, marks, at := drawMoves(rt), rapid.Bool().Draw(rt, "marks"), number(rapid.IntRange(0, states-1).Draw(rt, "at"))
			machine, err := core.NewMachine("random", moves...)
			require.NoError(rt, err)
			m, id := newModel(moves, marks, at), rows.Add(1)
			table, insert, request := guard.NewTable(db, "whole", machine, nil), "INSERT INTO whole (id, state) VALUES (?, ?)", guard.Request{ID: id}
			if !marks {
				table, insert = guard.NewTable(db, "bare", machine, nil, guard.WithColumns(bare)), "INSERT INTO bare (code, status) VALUES (?, ?)"
				request = guard.Request{Key: fmt.Sprint(id)}
			}
			err = tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
				key := any(id)
				if !marks {
					key = request.Key
				}
				_, err := tx.ConnOf(ctx, db).ExecContext(ctx, db.Dialect().Bind(insert), key, int(at))
				require.NoError(rt, err)
				for range rapid.IntRange(1, 15).Draw(rt, "asked") {
					mv := moves[rapid.IntRange(0, len(moves)-1).Draw(rt, "move")]
					request.Move = mv.Name
					checkAnswer(ctx, rt, table, request, m, mv)
				}
				return nil
			})
			require.NoError(rt, err)
		})
	})
}

func checkAnswer(ctx context.Context, t *rapid.T, table *guard.Table[number], r guard.Request, m *model, mv core.Move[number]) {
	before := m.state
	answer, early := m.ask(mv)
	got, err := table.Move(ctx, r)
	about := fmt.Sprintf("%s asked for in %d (last %v, epoch %d)", mv.Name, before, m.last, m.epoch)
	require.Equal(t, answer, got.Answer, about)
	require.Equal(t, []number{before, m.state}, []number{got.Current, got.State}, about)
	if answer != core.Rejected {
		require.NoError(t, err, about)
		return
	}
	refused, ok := errors.AsType[*core.TransitionError](err)
	require.True(t, ok, err)
	require.Equal(t, early, refused.Early, about)
}
