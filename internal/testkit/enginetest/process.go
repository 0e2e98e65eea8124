package enginetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const variable = "SURFIN_ENGINETEST"

type orders struct {
	Name   string        `json:"name"`
	URL    string        `json:"url"`
	Queues []string      `json:"queues"`
	Slots  int           `json:"slots"`
	Grace  time.Duration `json:"grace"`
	Open   bool          `json:"open"`
}

// Main runs the tests, or a worker if the suite started this process as one.
func Main(m *testing.M, maker Maker) int {
	text := os.Getenv(variable)
	if text == "" {
		return testdb.Main(m)
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	if err := o.work(context.Background(), maker); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o orders) work(ctx context.Context, maker Maker) (err error) {
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: o.URL}})
	if err != nil {
		return err
	}
	defer provider.Close() //nolint:errcheck // the process ends
	db, err := provider.Database(tx.Default)
	if err != nil {
		return err
	}
	b := &bed{World: World{URL: o.URL, Database: db, Work: &Work{db: db}, Grace: o.Grace, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}}
	made, err := maker(ctx, b.World)
	if err != nil {
		return err
	}
	stop, gate := make(chan struct{}), make(chan struct{})
	if o.Open {
		close(gate)
	}
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		if lines.Scan() && !o.Open {
			close(gate)
		}
		for lines.Scan() { //nolint:revive // to the end
		}
		close(stop)
	}()
	var mu sync.Mutex
	return made.Run(ctx, stop, engine.Subscription{Queues: o.Queues, Slots: o.Slots}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		if !o.Open {
			mu.Lock()
			fmt.Printf("hand %d\n", d.ID)
			mu.Unlock()
		}
		<-gate
		taken, err := b.Work.Take(ctx, d, o.Name)
		if err == nil && taken {
			err = b.Work.End(ctx, d)
		}
		switch {
		case err != nil:
			return engine.RetryAfter(time.Second)
		case !taken:
			return engine.Drop()
		}
		return engine.Done()
	})
}

type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu    sync.Mutex
	hands []int64
}

func (b *bed) start(o orders) *process {
	o.URL, o.Grace = b.URL, b.Grace
	text, err := json.Marshal(o)
	require.NoError(b, err)
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^$")} //nolint:gosec,noctx // ourselves; it ends with its input
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(b, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, p.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var id int64
			if n, _ := fmt.Sscanf(lines.Text(), "hand %d", &id); n == 1 { //nolint:errcheck // other lines are no concern
				p.mu.Lock()
				p.hands = append(p.hands, id)
				p.mu.Unlock()
			}
		}
	}()
	b.Cleanup(func() {
		p.stdin.Close()  //nolint:errcheck // it may be gone
		<-read           // to the end, before Wait closes it
		_ = p.cmd.Wait() //nolint:errcheck // it may have been killed
	})
	return p
}

func (p *process) open() error {
	_, err := io.WriteString(p.stdin, "go\n")
	return err
}

func (p *process) held() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := slices.Clone(p.hands)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func processes() []test {
	return []test{
		{"two processes both get work, and no more than they have slots", twoProcesses},
		{"work that was in the hand of a killed process is found, and done once", killed},
	}
}

func twoProcesses(b *bed) {
	const each, n = 3, 60
	o := orders{Queues: []string{"a"}, Slots: each}
	o.Name = "first"
	first := b.start(o)
	o.Name = "second"
	second := b.start(o)
	b.submit(b.Context(), tasks(1, n)...)
	b.until("both have their slots full", func() bool { return len(first.held()) == each && len(second.held()) == each })
	require.NoError(b, first.open())
	require.NoError(b, second.open())
	b.until("all are done", func() bool { return b.number("state = 'done'") == n })
	require.Equal(b, n, b.number("takes = 1"))
}

func killed(b *bed) {
	b.remake(2 * time.Second)
	victim := b.start(orders{Name: "victim", Queues: []string{"a"}, Slots: 1})
	d := task(1)
	b.submit(b.Context(), d)
	b.until("it is in hand", func() bool { return len(victim.held()) == 1 })
	require.NoError(b, victim.cmd.Process.Kill())
	w := b.work(1, []string{"a"}, nil)
	b.until("it is done", func() bool {
		missing, err := b.engine.Missing(b.Context(), d)
		require.NoError(b, err)
		if len(missing) > 0 {
			require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
				next, applied, err := b.Work.again(ctx, d)
				if err != nil || !applied {
					return err
				}
				d = next
				return b.engine.Enqueue(ctx, d)
			}))
		}
		return b.number("state = 'done'") == 1
	})
	require.Equal(b, 1, b.number("takes = 1"))
	require.True(b, w.has(1))
	if b.engine.Capabilities().Loses {
		require.Equal(b, int64(2), d.Epoch, "it had to be delivered again")
	}
}
