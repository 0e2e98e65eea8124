//test:plain

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	parts "github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// asCommand makes the test binary behave as the command itself, for tests that need their own
// process (signals). The settings ignore SURFIN_TEST_*.
const asCommand = "SURFIN_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(context.Background(), app(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// Under nohup SIGHUP is ignored, in children too: one that is caught is reset to its default in
	// them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(testdb.Main(m))
}

func app(more ...registry.Component) cli.App {
	matchers, err := exception.NewMatchers(errorclass.Stock()...)
	if err != nil {
		panic(err)
	}
	components, err := registry.New(
		slices.Concat(csv.Components(), table.Components(), filter.Components(), parts.Components(), oddComponents(), more),
		[]registry.NamedItem{{Name: "number", Type: item.TypeOf[number]("number")}}, matchers)
	if err != nil {
		panic(err)
	}
	return cli.App{Name: "surfin", Version: "1.2.3", Registry: components, Open: func(ctx context.Context, s cli.Settings, observer core.Observer) (*cli.Session, error) {
		configs := map[string]gormdb.Config{}
		for name, d := range s.Databases {
			configs[name] = gormdb.Config{FileMode: s.Files.Mode, URL: d.URL, MaxOpen: d.MaxOpen}
		}
		provider, err := gormdb.Open(ctx, configs)
		if err != nil {
			return nil, err
		}
		fail := func(err error) (*cli.Session, error) { return nil, errors.Join(err, provider.Close()) }
		db, err := provider.Database(s.Repository.Database)
		if err != nil {
			return fail(err)
		}
		r := repository.New(db, repository.Options{Prefix: s.Repository.Prefix, Observer: observer})
		checkpoints := repository.NewCheckpoints(r, provider, repository.CheckpointOptions{AutoMigrate: s.AutoMigrate.Applies})
		launcher, err := job.NewLauncher(job.Config{
			Repository: r.Ports(), Stores: checkpoints, Observer: observer, Lease: s.Lease, Heartbeat: s.Heartbeat,
			Executor: step.NewSimpleStepExecutor(r, db.Name(), observer),
		})
		if err != nil {
			return fail(err)
		}
		service, err := operator.New(operator.Config{
			Repository: r.Ports(), Launcher: launcher, Provider: provider, Registry: components, FileMode: s.Files.Mode,
			Database: s.Repository.Database, Schema: r, AutoMigrate: s.AutoMigrate.Applies, Checkpoints: checkpoints,
			Definitions: r,
		})
		if err != nil {
			return fail(err)
		}
		return &cli.Session{Service: service, Provider: provider, Close: func(context.Context) error { return provider.Close() }}, nil
	}}
}

// oddComponents: `panic` panics, `hang` waits for the end of its context, and `endless` reads
// numbers forever.
func oddComponents() []registry.Component {
	tasklet := func(name string, f core.TaskletFunc) registry.Component {
		return registry.Component{
			Kind: registry.KindTasklet, Name: name, Summary: "for tests", NoTransaction: true,
			New: func(context.Context, any, registry.BuildContext) (any, error) { return f, nil },
		}
	}
	type config struct {
		Item item.Type `key:"item" required:"true"`
		Gate string    `key:"gate"`
	}
	return []registry.Component{
		tasklet("panic", func(context.Context, *core.StepContribution) error { panic("the sky is falling") }),
		tasklet("hang", func(ctx context.Context, _ *core.StepContribution) error { <-ctx.Done(); return ctx.Err() }),
		{
			Kind: registry.KindWriter, Name: "brittle", Summary: "for tests", Config: reflect.TypeFor[brittle](),
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return b.In.ToRecords(cfg.(*brittle))
			},
		},
		tasklet("nothing", func(context.Context, *core.StepContribution) error { return nil }),
		{
			Kind: registry.KindReader, Name: "endless", Summary: "for tests", Config: reflect.TypeFor[config](),
			Types: func(cfg any, _ item.Type) (item.Type, error) { return cfg.(*config).Item, nil },
			New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
				return item.EraseReader[number](endless{gate: cfg.(*config).Gate}), nil
			},
		},
	}
}

type number struct{ N int64 }

type brittle struct {
	While string `key:"while" required:"true"`
}

func (*brittle) WriteRecords(context.Context, *row.Schema, [][]row.Value) error { return nil }

func (b *brittle) Finish(context.Context) error {
	if _, err := os.Stat(b.While); err == nil {
		return errors.New("it cannot finish")
	}
	return nil
}

type endless struct{ gate string }

func (r endless) Read(context.Context) (number, error) {
	if r.gate == "" {
		return number{}, nil
	}
	if _, err := os.ReadFile(r.gate); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return number{}, err
	}
	return number{}, nil
}

type scene struct {
	t   *testing.T
	dir string
	url string
}

func newScene(t *testing.T, url string, files map[string]string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), url: url}
	for name, text := range files {
		s.write(name, text)
	}
	return s
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(text), 0o600))
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

type result struct {
	code     int
	out, err string
}

func (s *scene) run(args ...string) result {
	s.t.Helper()
	return s.runWith(strings.NewReader(""), args...)
}

func (s *scene) runWith(stdin io.Reader, args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(context.Background(), app(), s.words(args), stdin, &out, &errs)
	return result{code: code, out: s.normal(out.String()), err: s.normal(errs.String())}
}

func (s *scene) words(args []string) []string {
	words := []string{"--database-url", s.url}
	for _, a := range args {
		if strings.HasSuffix(a, ".yaml") {
			a = s.path(a)
		}
		words = append(words, a)
	}
	return words
}

var (
	normalTime  = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d `)
	normalTook  = regexp.MustCompile(`\b(\d+ms|\d+\.\d+s)\b`)
	normalSpeed = regexp.MustCompile(`(?m) TOOK [\d,]+$`)
	normalRule  = regexp.MustCompile(`─+`)
	normalSpace = regexp.MustCompile(` {2,}`)
	normalStamp = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z`)
)

func (s *scene) normal(text string) string {
	text = strings.ReplaceAll(text, s.url, "URL")
	text = strings.ReplaceAll(text, strings.Replace(s.url, "sqlite:", "sqlite ", 1), "DATABASE")
	text = strings.ReplaceAll(text, s.dir, "DIR")
	text = normalTime.ReplaceAllString(text, "")
	text = normalTook.ReplaceAllString(text, "TOOK")
	text = normalRule.ReplaceAllString(text, "─")
	text = normalSpace.ReplaceAllString(text, " ")
	text = normalStamp.ReplaceAllString(text, "TIME")
	return normalSpeed.ReplaceAllString(text, " TOOK SPEED")
}

const loadJob = `job: load
description: Numbers into a table.
parameters:
  input: {type: path, default: numbers.csv, doc: what to read}
  year: {type: int, default: 1995, min: 1990, max: 2030}
  least: {type: int, default: 0, identifying: false}
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: {id: int, name: string}}}
    processor: {filter: item.id >= params.least}
    writer: {table: {name: numbers, create: true}}
- step: last
  tasklet: nothing
`

const numbers = "id,name\n1,one\n2,two\n3,three\n4,four\n5,five\n"
