package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const childURL = "SURFIN_TEST_CAFE_URL"

// child is the café in a separate process, which prints its address.
func child(url string) int {
	conf, err := settings(url)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var mux *http.ServeMux
	app := fx.New(fx.NopLogger, shop(conf), fx.Invoke(background), fx.Populate(&mux))
	if err := app.Start(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("http://" + listener.Addr().String())
	fmt.Println(http.Serve(listener, mux)) //nolint:gosec // it is killed
	return 1
}

// process is a child, restarted when it is killed.
type process struct {
	url string

	mu      sync.Mutex
	cmd     *exec.Cmd
	address string
}

func (p *process) start(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+p.url)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scanner := bufio.NewScanner(out)
	require.True(t, scanner.Scan(), "it ended")
	require.True(t, strings.HasPrefix(scanner.Text(), "http://"), scanner.Text())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.address = cmd, scanner.Text()
}

func (p *process) kill(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait())
}

func (p *process) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

func TestEachOrderIsServedOnceThoughProcessesAreKilled(t *testing.T) {
	t.Parallel()
	const orders, kills = 12, 3
	testdb.Each(t, func(t *testing.T, url string) {
		s := open(t, url)
		mortal, other := &process{url: url}, &process{url: url}
		mortal.start(t)
		other.start(t)
		client := &http.Client{Timeout: 20 * time.Second}
		call := func(i int, path, key, body string) {
			for try := 0; ; try++ {
				p := mortal
				if (i+try)%2 == 1 {
					p = other
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.at()+path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Idempotency-Key", key)
				w, err := client.Do(r)
				if t.Context().Err() != nil {
					return
				}
				if err != nil {
					continue // it was killed
				}
				_ = w.Body.Close()
				if w.StatusCode < 300 {
					return
				}
				if w.StatusCode < 500 {
					t.Errorf("%s: %s", path, w.Status)
					return
				}
			}
		}
		half := make(chan struct{}, orders)
		var wg sync.WaitGroup
		for i := range orders {
			wg.Go(func() {
				call(i, "/orders", fmt.Sprint("p", i), `{"item": "coffee", "quantity": 2}`)
				id := s.number("SELECT id FROM orders WHERE request_key = ?", fmt.Sprint("p", i))
				for n, trigger := range []Trigger{HandoverCompleted, PaymentSucceeded, PaymentSucceeded, PaymentRequested, StockReserveSucceeded} {
					if n == 2 {
						half <- struct{}{}
					}
					key := fmt.Sprint(id, trigger)
					call(i+n, "/events", "", fmt.Sprintf(`{"key": %q, "order": %d, "trigger": %q}`, key, id, trigger))
				}
			})
		}
		for range kills {
			<-half
			mortal.kill(t)
			mortal.start(t)
		}
		wg.Wait()
		require.Eventually(t, func() bool {
			return s.number("SELECT count(*) FROM orders WHERE state = 'Completed'") == orders && s.number("SELECT count(*) FROM ledger") == orders
		}, 90*time.Second, 20*time.Millisecond)
		mortal.kill(t)
		other.kill(t)
		require.EqualValues(t, orders, s.number("SELECT count(*) FROM orders WHERE version = 4"))
		require.EqualValues(t, 1000-2*orders, s.number("SELECT quantity FROM stock WHERE item = 'coffee'"))
		require.EqualValues(t, orders, s.number("SELECT count(*) FROM ledger WHERE entry = 'notify'"))
	})
}
