//test:plain

package itemtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type list struct {
	fault  string
	next   int
	closed bool
	shared *[]int
	box    *int
}

var faults = []string{"", "position ahead", "position ignored", "end forgotten", "item reused", "garbage taken", "change unseen", "closed twice", "cancel loses"}

func (l *list) Open(_ context.Context, at item.Position) error {
	if at == nil || l.fault == "position ignored" {
		return nil
	}
	var p struct{ Next, Len int }
	if err := json.Unmarshal(at, &p); err != nil && l.fault != "garbage taken" {
		return err
	}
	if p.Len != len(*l.shared) && l.fault != "change unseen" && l.fault != "garbage taken" {
		return errors.New("it changed")
	}
	l.next = p.Next
	return nil
}

func (l *list) Read(ctx context.Context) (*int, error) {
	if l.fault == "cancel loses" && ctx.Err() != nil && l.next < len(*l.shared) {
		l.next++
		return nil, ctx.Err()
	}
	if l.next >= len(*l.shared) {
		if l.next > len(*l.shared) && l.fault == "end forgotten" {
			return new(int), nil
		}
		if l.fault == "end forgotten" {
			l.next++
		}
		return nil, io.EOF
	}
	l.next++
	if l.fault != "item reused" || l.box == nil {
		l.box = new(int)
	}
	*l.box = (*l.shared)[l.next-1]
	return l.box, nil
}

func (l *list) Position() (item.Position, error) {
	p := struct{ Next, Len int }{l.next, len(*l.shared)}
	if l.fault == "position ahead" && l.next == 3 {
		p.Next++
	}
	return json.Marshal(p)
}

func (l *list) Close(context.Context) error {
	if l.closed || l.fault == "closed twice" {
		return errors.New("closed twice")
	}
	l.closed = true
	return nil
}

// TestTheSuiteFindsEveryFault runs itself in a process of its own for each fault, since a failing suite
// fails the test that runs it.
func TestTheSuiteFindsEveryFault(t *testing.T) {
	if fault, inner := os.LookupEnv("ITEMTEST_FAULT"); inner {
		numbers := []int{1, 2, 3, 4, 5}
		Reader(t, ReaderConfig{
			New: func(testing.TB) item.Reader {
				return item.EraseReader[*int](&list{fault: fault, shared: &numbers})
			},
			Change: func(testing.TB) { numbers = numbers[:4] },
		})
		return
	}
	for _, fault := range faults {
		t.Run("fault "+fault, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTheSuiteFindsEveryFault$")
			cmd.Env = append(os.Environ(), "ITEMTEST_FAULT="+fault)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (fault == "") {
				t.Errorf("with the fault %q the suite answers %v\n%s", fault, err, out)
			}
		})
	}
}

type lines struct {
	fault, path string
	rest        []string
	next        int
}

func (l *lines) Open(_ context.Context, at item.Position) error {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	if l.rest = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"); at == nil {
		return nil
	}
	if err := json.Unmarshal(at, &l.next); err != nil {
		return err
	}
	if l.fault == "restart fails" && l.rest[l.next-1] == "other" {
		l.next++
	}
	return nil
}

func (l *lines) Read(context.Context) (int, error) {
	if l.next == len(l.rest) {
		return 0, io.EOF
	}
	n, err := strconv.Atoi(l.rest[l.next])
	switch {
	case err == nil && (l.fault != "end decides" || strings.HasSuffix(l.rest[len(l.rest)-1], "9")):
		l.next++
		return n, nil
	case err == nil:
		l.next++
		return -n, nil
	case l.fault == "nameless":
		return 0, errors.New("it is no number")
	}
	l.next++
	return 0, item.Consumed(item.Meta{Path: l.path, Line: int64(l.next)}, err)
}

func (l *lines) Position() (item.Position, error) { return json.Marshal(l.next) }

func TestTheSuiteFindsEveryFaultWithTextsThatAreWrong(t *testing.T) {
	if fault, inner := os.LookupEnv("ITEMTEST_FAULT"); inner {
		path := filepath.Join(t.TempDir(), "numbers.txt")
		if err := os.WriteFile(path, []byte("11\n22\n33\n44\n59\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		Reader(t, ReaderConfig{Source: path, New: func(testing.TB) item.Reader {
			return item.EraseReader[int](&lines{fault: fault, path: path})
		}})
		return
	}
	for _, fault := range []string{"", "nameless", "end decides", "restart fails"} {
		t.Run("fault "+fault, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTheSuiteFindsEveryFaultWithTextsThatAreWrong$")
			cmd.Env = append(os.Environ(), "ITEMTEST_FAULT="+fault)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (fault == "") {
				t.Errorf("with the fault %q the suite answers %v\n%s", fault, err, out)
			}
		})
	}
}

// store writes numbers into shared memory, like a file.
type store struct {
	fault  string
	target *target
	n      int
}

type target struct {
	part []int
	view string
}

func (s *store) Open(_ context.Context, at item.Position) error {
	if at == nil {
		s.target.part = nil
		return nil
	}
	if err := json.Unmarshal(at, &s.n); err != nil {
		return err
	}
	if s.n > len(s.target.part) && s.fault != "loss unseen" {
		return errors.New("it is lost")
	}
	if s.fault != "not truncated" && s.n <= len(s.target.part) {
		s.target.part = s.target.part[:s.n]
	}
	return nil
}

func (s *store) Write(_ context.Context, items []int) error {
	s.target.part = append(s.target.part, items...)
	if s.fault == "seen early" {
		s.target.view = "some"
	}
	return nil
}

func (s *store) Rewind(_ context.Context, at item.Position) error {
	if s.fault == "not rewound" {
		return nil
	}
	s.n = 0
	return s.Open(context.Background(), at)
}

func (s *store) Position() (item.Position, error) { return json.Marshal(len(s.target.part)) }

func (s *store) Finish(context.Context) error {
	text, err := json.Marshal(s.target.part)
	if s.fault == "finished twice" {
		text = append([]byte(s.target.view), text...)
	}
	s.target.view = string(text)
	return err
}

func TestTheSuiteFindsEveryFaultOfAWriter(t *testing.T) {
	if fault, inner := os.LookupEnv("ITEMTEST_FAULT"); inner {
		var to target
		Writer(t, WriterConfig{
			New:      func(testing.TB) item.Writer { return item.EraseWriter[int](&store{fault: fault, target: &to}) },
			Chunks:   func(testing.TB) []item.Items { return Chunks([]int{1, 2}, []int{3}, []int{4, 5, 6}) },
			Contents: func(testing.TB) string { return strings.TrimSpace(to.view) },
			Clear:    func(testing.TB) { to = target{} },
			Lose:     func(testing.TB) { to.part = nil },
			Want:     "[1,2,3,4,5,6]",
			Hidden:   true,
		})
		return
	}
	for _, fault := range []string{"", "not truncated", "loss unseen", "not rewound", "finished twice", "seen early"} {
		t.Run("fault "+fault, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTheSuiteFindsEveryFaultOfAWriter$")
			cmd.Env = append(os.Environ(), "ITEMTEST_FAULT="+fault)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (fault == "") {
				t.Errorf("with the fault %q the suite answers %v\n%s", fault, err, out)
			}
		})
	}
}
