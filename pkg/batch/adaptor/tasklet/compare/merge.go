package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type merge struct {
	config *config
	sides  [2]*side
	stop   <-chan struct{}

	pairs, sums [][2]int
	totals      [][2]*big.Rat

	rows             [2]int64
	equal, differing int64
	only             [2]int64
	shown            []string
}

func (m *merge) close() (err error) {
	for _, s := range m.sides {
		if s != nil {
			s.cancel()
			if failure := s.rows.Close(); s.dialect != tx.MySQL { // there it was cancelled
				err = errors.Join(err, failure)
			}
		}
	}
	return err
}

func (m *merge) run() error {
	if len(m.config.Key) == 0 {
		return m.one()
	}
	if err := m.match(); err != nil {
		return err
	}
	for i := range m.sides {
		if err := m.advance(i); err != nil {
			return err
		}
	}
	left, right := m.sides[0], m.sides[1]
	for n := 0; left.row != nil || right.row != nil; n++ {
		if err := m.checkStop(n); err != nil {
			return err
		}
		if err := m.step(left, right); err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) checkStop(n int) error {
	if n%1024 != 0 {
		return nil
	}
	select {
	case <-m.stop:
		return core.ErrStopped
	default:
		return nil
	}
}

// step compares the rows of the lower of the two keys, and advances past it.
func (m *merge) step(left, right *side) error {
	c := 0
	var err error
	switch {
	case left.row == nil:
		c = 1
	case right.row == nil:
		c = -1
	default:
		if c, err = orderOf(left.names, left.row, left.keys, right.row, right.keys, left.zone); err != nil {
			return err
		}
	}
	switch {
	case c < 0:
		m.lonely(0)
		return m.advance(0)
	case c > 0:
		m.lonely(1)
		return m.advance(1)
	}
	m.compare(left, right)
	if err := m.advance(0); err != nil {
		return err
	}
	return m.advance(1)
}

func (m *merge) advance(i int) error {
	s := m.sides[i]
	if err := s.next(); err != nil {
		return fmt.Errorf("the %s: %w", sideName(i), err)
	}
	if s.row == nil {
		return nil
	}
	m.rows[i]++
	for n, at := range m.sums {
		v, ok := s.row[at[i]].asNumber()
		if !ok && v.kind != null {
			return fmt.Errorf("the %s: the sum of %s: %s is not a number, at %s", sideName(i), s.names[at[i]], v, s.keyText())
		}
		if ok {
			m.totals[n][i].Add(m.totals[n][i], v.rat())
		}
	}
	return nil
}

func (m *merge) lonely(i int) {
	m.only[i]++
	m.show("only %s: %s", sideName(i), m.sides[i].keyText())
}

func (m *merge) compare(left, right *side) {
	var differ []string
	for _, at := range m.pairs {
		if a, b := left.row[at[0]], right.row[at[1]]; !same(a, b, left.zone) {
			differ = append(differ, fmt.Sprintf("%s %s and %s", left.names[at[0]], a, b))
		}
	}
	if len(differ) == 0 {
		m.equal++
		return
	}
	m.differing++
	if len(m.shown) < m.config.Show {
		m.show("%s: %s", left.keyText(), strings.Join(differ, ", "))
	}
}

func (m *merge) show(format string, args ...any) {
	if len(m.shown) < m.config.Show {
		m.shown = append(m.shown, fmt.Sprintf(format, args...))
	}
}

func (m *merge) match() error {
	left, right := m.sides[0], m.sides[1]
	columns, errs := m.config.Columns, []error(nil)
	if len(columns) == 0 {
		for i, name := range left.names {
			if !slices.Contains(left.keys, i) {
				columns = append(columns, name)
			}
		}
		for _, name := range right.names {
			if left.find(name) < 0 {
				errs = append(errs, fmt.Errorf("the left has no column %s: name the ones to compare in `columns`%s", name, nearest.Hint(name, left.names)))
			}
		}
	}
	places := func(names []string) (found [][2]int) {
		for _, name := range names {
			var pair [2]int
			for i, s := range m.sides {
				if pair[i] = s.find(name); pair[i] < 0 {
					errs = append(errs, fmt.Errorf("the %s has no column %s%s", sideName(i), name, nearest.Hint(name, s.names)))
				}
			}
			found = append(found, pair)
		}
		return found
	}
	m.pairs, m.sums = places(columns), places(m.config.Sums)
	for range m.sums {
		m.totals = append(m.totals, [2]*big.Rat{new(big.Rat), new(big.Rat)})
	}
	return errors.Join(errs...)
}

func (m *merge) one() error {
	for i, s := range m.sides {
		if err := m.advance(i); err != nil {
			return err
		}
		if s.row == nil {
			return fmt.Errorf("the %s returned no row, but without a `key` one is expected", sideName(i))
		}
		kept := s.row
		if err := s.next(); err != nil {
			return fmt.Errorf("the %s: %w", sideName(i), err)
		}
		if s.row != nil {
			return fmt.Errorf("the %s returned more than one row: set the `key` that identifies them", sideName(i))
		}
		s.row = kept
	}
	left, right := m.sides[0], m.sides[1]
	if len(left.row) != len(right.row) {
		return fmt.Errorf("the left has %d columns, but the right has %d", len(left.row), len(right.row))
	}
	var differ []string
	for i := range left.row {
		if !same(left.row[i], right.row[i], left.zone) {
			differ = append(differ, fmt.Sprintf("column %d (%s): %s and %s", i+1, left.names[i], left.row[i], right.row[i]))
		}
	}
	if len(differ) == 0 {
		m.equal++
		return nil
	}
	m.differing++
	if m.config.Show > 0 {
		m.shown = differ[:min(len(differ), m.config.Show)]
	}
	return nil
}

func (m *merge) report(out map[string]any) {
	sums := map[string][2]string{}
	for i, name := range m.config.Sums {
		sums[name] = [2]string{ratText(m.totals[i][0]), ratText(m.totals[i][1])}
	}
	asText, err := json.Marshal(sums)
	if err != nil {
		panic(err) // texts always marshal
	}
	out["left"], out["right"], out["equal"], out["differing"] = m.rows[0], m.rows[1], m.equal, m.differing
	out["only_left"], out["only_right"] = m.only[0], m.only[1]
	out["sums"], out["message"] = string(asText), m.message()
}

func (m *merge) message() string {
	if m.differing+m.only[0]+m.only[1] == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("%d rows and %d, %d equal, %d differing, %d only left, %d only right",
		m.rows[0], m.rows[1], m.equal, m.differing, m.only[0], m.only[1])}
	for i, name := range m.config.Sums {
		if a, b := m.totals[i][0], m.totals[i][1]; a.Cmp(b) != 0 {
			parts = append(parts, fmt.Sprintf("the sum of %s is %s and %s", name, ratText(a), ratText(b)))
		}
	}
	return strings.Join(append(parts, m.shown...), "; ")
}
