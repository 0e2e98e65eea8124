package inbox_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	childURL  = "SURFIN_TEST_INBOX_URL"
	childDies = "SURFIN_TEST_INBOX_DIES"

	parcels = 20
)

// child is a process that processes events. A dying one waits to be killed in the handler of its third
// event, before or after the move.
func child(url, dies string) int {
	ctx := context.Background()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: url}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	db, err := provider.Database(tx.Default)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	m, err := machine()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s := &scene{db: db, parcels: guard.NewTable(db, "parcels", m, nil)}
	n := 0
	wait := func(at string) {
		if dies == at && n == 3 {
			fmt.Println("here")
			select {}
		}
	}
	_, err = inbox.New(s.parcels, repository.DefaultPrefix, inbox.Options{MaxOffers: 100}).Process(ctx, "parcels",
		func(ctx context.Context, e inbox.Event) (guard.Result[state], error) {
			n++
			wait("before")
			result, err := s.handle(ctx, e)
			wait("after")
			return result, err
		})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func start(t testing.TB, url, dies string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childDies+"="+dies)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

func (s *scene) whole() {
	s.Helper()
	var events []inbox.Event
	for id := range int64(parcels) {
		s.insert(id)
		events = append(events, event(id, "pack"), event(id, "send"), event(id, "arrive"))
	}
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	s.receive(events...)
}

// processAll waits until nothing is open: the server may not know yet that a process is gone.
func (s *scene) processAll() {
	s.Helper()
	require.Eventually(s, func() bool {
		s.process()
		return s.text("SELECT count(*) FROM "+s.events()+" WHERE processed_at IS NULL") == "0"
	}, 20*time.Second, 5*time.Millisecond)
}

func (s *scene) events() string { return s.db.Dialect().Quote(repository.DefaultPrefix + "event") }

func (s *scene) finished() {
	s.Helper()
	require.Equal(s, fmt.Sprint(parcels), s.text("SELECT count(*) FROM parcels WHERE state = 'THERE' AND version = 3"))
	require.Equal(s, fmt.Sprint(3*parcels), s.text("SELECT count(*) FROM labels"))
}

func TestManyProcessEachEventOnce(t *testing.T) {
	each(t, inbox.Options{MaxOffers: 100}, func(s *scene) {
		s.whole()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := s.Process(s.Context(), "parcels", s.handle); err != nil {
					s.Error(err)
				}
			})
		}
		wg.Wait()
		s.processAll() // one may have skipped an event that another one held
		s.finished()
	})
}

func TestAnEventIsProcessedOnceThoughItsProcessIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"before", "after"} {
		t.Run(at, func(t *testing.T) {
			eachURL(t, inbox.Options{MaxOffers: 100}, func(s *scene, url string) {
				s.whole()
				dying, out := start(t, url, at)
				require.True(t, out.Scan(), "it ended")
				require.Equal(t, "here", out.Text())
				kill := sync.OnceValue(dying.Process.Kill)
				if strings.HasPrefix(url, "mysql:") {
					// There the other process waits for the row of the held event, whatever its move.
					time.AfterFunc(time.Second/2, func() { _ = kill() })
				}
				beside := s.beside(url)
				require.NoError(t, kill())
				require.Error(t, dying.Wait())
				if beside != nil {
					require.NoError(t, beside.Wait())
				}
				s.processAll()
				s.finished()
			})
		})
	}
}

func (s *scene) beside(url string) *exec.Cmd {
	if strings.HasPrefix(url, "sqlite:") {
		return nil
	}
	cmd, out := start(s, url, "")
	for out.Scan() {
		s.Error(out.Text())
	}
	return cmd
}
