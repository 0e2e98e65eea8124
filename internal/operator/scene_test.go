package operator

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/files"
	sqltask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/sql"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

var update = flag.Bool("update", false, "write testdata anew")

type scene struct {
	t        *testing.T
	e        *testengine.Engine
	s        *Service
	dir      string
	registry *registry.Registry
	config   Config
}

func newScene(t *testing.T, url string) *scene {
	t.Helper()
	s := &scene{t: t, e: testengine.New(t, url), dir: t.TempDir()}
	matchers, err := exception.NewMatchers(errorclass.Stock()...)
	require.NoError(t, err)
	components := slices.Concat(csv.Components(), filter.Components(), table.Components(), files.Components(), sqltask.Components())
	s.registry, err = registry.New(components, nil, matchers)
	require.NoError(t, err)
	s.config = Config{Repository: s.e.Repository.Ports(), Launcher: s.e.Launcher, Provider: s.e.Provider, Registry: s.registry, Definitions: s.e.Repository}
	s.change(func(*Config) {})
	return s
}

func (s *scene) change(with func(c *Config)) {
	s.t.Helper()
	with(&s.config)
	var err error
	s.s, err = New(s.config)
	require.NoError(s.t, err)
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

func (s *scene) run(name string, params map[string]string) *core.JobExecution {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	file, err := jobfile.Load(path, s.registry)
	require.NoError(s.t, err)
	values, err := job.ValidateParameters(file.Parameters(), params)
	require.NoError(s.t, err)
	j, err := file.Compile(jobfile.Deps{Provider: s.e.Provider, Registry: s.registry})
	require.NoError(s.t, err)
	j.Definition.Path = path
	exec, err := s.e.Launcher.Run(context.Background(), j, values, nil)
	require.NoError(s.t, err)
	return exec
}

var (
	anyTime     = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]+Z"`)
	anyDuration = regexp.MustCompile(`("(?:duration|rows_per_second|items_per_second|total)": )[\d.e+-]+`)
	anyPart     = regexp.MustCompile(`\.part\.[0-9a-z-]+`)
	anyPID      = regexp.MustCompile(`("pid": |process )\d+`)
)

// matches compares the JSON of a view with the one in testdata, without the parts that differ from
// run to run. An owner's nonce and the text of a definition are never in it.
func (s *scene) matches(golden string, view any) {
	s.t.Helper()
	data, err := json.MarshalIndent(view, "", "  ")
	require.NoError(s.t, err)
	owner, err := job.CurrentOwner()
	require.NoError(s.t, err)
	for _, e := range s.executions() {
		require.NotContains(s.t, string(data), e.Owner.Nonce)
	}
	require.NotContains(s.t, string(data), "flow:", "the text of the definition")
	text := strings.ReplaceAll(string(data), s.dir, "DIR")
	text = anyTime.ReplaceAllString(text, `"TIME"`)
	text = anyDuration.ReplaceAllString(text, "${1}0")
	text = anyPart.ReplaceAllString(text, ".part.PART") // random letters, which may contain a short host name
	text = strings.ReplaceAll(text, owner.Host, "HOST")
	text = anyPID.ReplaceAllString(text, "${1}1")
	path := filepath.Join("testdata", golden+".json")
	if *update {
		require.NoError(s.t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(s.t, err)
	require.Equal(s.t, string(want), text+"\n", "%s: the keys of a view are documented", path)
}

func (s *scene) executions() []core.JobExecution {
	s.t.Helper()
	list, err := s.e.Repository.Executions(context.Background(), ports.ExecutionFilter{})
	require.NoError(s.t, err)
	return list
}

// numberedLines returns csv lines of the ints from 1 to n, with "bad" in place of some.
func numberedLines(n int, bad ...int) string {
	var b strings.Builder
	b.WriteString("id\n")
	for i := 1; i <= n; i++ {
		if slices.Contains(bad, i) {
			b.WriteString("bad\n")
			continue
		}
		fmt.Fprintln(&b, i)
	}
	return b.String()
}
