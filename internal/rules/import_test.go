package rules_test

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testtree"
)

const module = "github.com/surfin-batch/surfin"

// A room is a folder of the house and the imports of our own module that its packages may have.
// Patterns are paths below the module; `*` is one folder, a trailing `/...` includes all folders below,
// existing or to come. A room may always import its own folder. The first room that matches a package
// decides; a package without a room is an error, so a new folder needs a decision.
type room struct {
	path string
	may  []string
	std  bool
	// kit means that it helps tests, may import everything, and is imported only from tests and other
	// kits.
	kit bool
}

// helpers are the small packages of internal, which know none of the layers. It does not take in the
// layers that are internal as well: a room that may import one of those names it.
const helpers = "internal/..."

func layersInside() []string {
	return []string{"internal/access/...", "internal/api/...", "internal/assembly", "internal/model", "internal/ports/...", "internal/cli/...", "internal/console/...", "internal/draft/...", "internal/job/...", "internal/jobfile/...", "internal/jobtest/...", "internal/operator/...", "internal/redrive/...", "internal/runtime/...", "internal/schedule/...", "internal/site", "internal/wording/..."}
}

func admits(pattern, dir string) bool {
	if pattern == helpers && slices.ContainsFunc(layersInside(), func(layer string) bool { return match(layer, dir) }) {
		return false
	}
	return match(pattern, dir)
}

// rooms are the import rules of docs/architecture.md, from the ground up.
func rooms() []room {
	core, tx, ours := "pkg/batch/core/...", "pkg/batch/tx/...", helpers
	model, ports := "internal/model", "internal/ports/..."
	steps := []string{core, tx, model, ports, "pkg/batch/chunk/...", "internal/redrive", "internal/job/..."}
	return append(stages(), []room{
		{path: "pkg/batch/batchtest/...", kit: true},
		{path: "pkg/batch/batchtest/itemtest/...", kit: true},
		{path: "internal/testkit/repositorytest/...", kit: true},
		{path: "internal/testkit/enginetest/...", kit: true},
		{path: "internal/testkit/txtest/...", kit: true},
		{path: "internal/test*/...", kit: true},
		{path: "internal/yamlfile/...", may: []string{"pkg/batch/core/row", "internal/nearest", "internal/smallfile"}},
		{path: "browser/...", kit: true}, {path: "bench/...", kit: true}, // and compares with alternatives
		{path: "internal/panics", std: true}, {path: "internal/fault", std: true}, {path: "internal/trait", std: true}, {path: "pkg/batch/core/config/...", std: true},
		{path: "internal/itemextra", may: []string{"pkg/batch/core/item", "pkg/batch/core/row"}, std: true},
		{path: "pkg/batch/core/exception/...", may: []string{"internal/panics"}, std: true},
		{path: "pkg/batch/core/row/...", may: []string{"pkg/batch/core/exception/...", "internal/jsontext/...", "internal/fault"}, std: true},
		{path: "internal/jsontext/...", may: []string{"internal/fault"}, std: true},
		{path: "internal/calendar/...", may: []string{"pkg/batch/core/row/..."}, std: true},
		{path: "pkg/batch/core/item/...", may: []string{"pkg/batch/core/exception/...", "pkg/batch/core/row/...", "internal/jsontext/...", "internal/gofield", "internal/fault"}, std: true},
		{path: "internal/gofield", may: []string{"pkg/batch/core/exception", "pkg/batch/core/row", "internal/fault"}, std: true},
		{path: "pkg/batch/core/registry/...", may: []string{ports, core, tx, "internal/calendar", "internal/urlpath"}, std: true},
		{path: ports, may: []string{core, "internal/calendar"}, std: true},
		{path: model, may: []string{core, ports, "internal/workslot", "internal/panics"}, std: true},
		{path: "internal/workslot", std: true}, {path: "internal/humanize/...", std: true},
		{path: "pkg/batch/core/task", may: []string{core, "internal/workslot"}, std: true},
		{path: core, may: []string{"internal/jsontext", "internal/calendar", "internal/panics", "internal/fault", "internal/urlpath"}, std: true},
		{path: "internal/txwork", std: true},
		{path: tx, may: []string{"internal/txwork"}, std: true},
		{path: "pkg/batch/chunk/...", may: []string{model, ports, core, tx, "internal/itemextra", "internal/panics", "internal/fault"}},
		{path: "internal/redrive", may: []string{model, ports, core, tx, "pkg/batch/chunk"}},
		{path: "pkg/batch/step/...", may: []string{model, ports, "internal/partcount", "internal/txwork", "internal/workslot", "internal/panics", core, tx, "internal/confine", "internal/place"}},
		{path: "internal/job/...", may: []string{model, ports, "internal/workslot", "internal/panics", core, "internal/lease", "internal/confine", "internal/series/sampling"}},
		{path: "internal/refusal", may: []string{core, ports}},
		{path: "internal/runtime/engine/...", may: []string{tx}, std: true},
		{path: "internal/schedule/...", may: []string{core, "internal/ports/taskports", "internal/calendar"}},
		{path: "pkg/batch/guard/...", may: []string{core, tx}, std: true},
		{path: "pkg/batch/inbox/...", may: []string{core, tx, "internal/panics", "pkg/batch/guard", "internal/gormtx/..."}},
		{path: "internal/runtime/...", may: []string{model, ports, "internal/workslot", "internal/panics", "internal/schedule", core, tx, "pkg/batch/guard/...", "pkg/batch/inbox", "internal/lease", "internal/boottime", "internal/confine", "internal/jsontext", "internal/nearest", "internal/refusal", "internal/series/sampling"}},
		{path: "pkg/batch/repository/...", may: []string{ports, model, core, tx, "internal/fault", "pkg/batch/guard/...", "internal/migrator/...", "internal/dberr/...", "internal/gormtx/..."}},
		{path: "pkg/batch/settings/...", may: []string{"pkg/batch/core", tx, ours}},
		{path: "internal/operator/...", may: append(steps, "internal/workslot", "internal/jobfile/...", "internal/schedule", ours)},
		// A draft's statement about a file holds if its reader agrees: it reads through that reader.
		{path: "internal/draft/...", may: []string{core, tx, "pkg/batch/adaptor/item/csv", "internal/jsonfile", "internal/jsontext", "internal/filestream", "internal/sqlvalue", "internal/nearest", "internal/humanize", "internal/contrib"}, std: true},
		{path: "internal/jobtest/...", may: []string{model, ports, core, tx, "internal/operator", "internal/jobfile/testfile", ours}},
		{path: "internal/changes", may: []string{core, ports}, std: true},
		{path: "internal/access/...", may: []string{"pkg/batch/settings", "internal/errorclass"}},
		// HTTP, pages, text and exit codes: the rules of running are the service's.
		{path: "internal/api/...", may: []string{model, ports, core, "internal/access", "internal/changes", "internal/operator/...", "internal/wording/...", "internal/runtime/...", "pkg/batch/settings/...", "internal/jobfile/...", ours}},
		// Pages around the service: no rule of running and no SQL.
		{path: "internal/console/...", may: []string{model, ports, core, "internal/access", "internal/operator/...", "internal/runtime", "pkg/batch/settings/...", "internal/jobfile/...", "internal/refusal", "internal/wording", ours}},
		{path: "internal/cli/...", may: []string{model, ports, core, tx, "internal/operator/...", "internal/runtime/...", "pkg/batch/settings/...", "internal/jobfile/...", "internal/access", "internal/api/...", "internal/changes", "internal/console/...", "internal/site", "internal/jobtest/...", "internal/draft/...", "internal/wording/...", ours}},
		{path: "internal/site", may: []string{"internal/access", "internal/api", "internal/changes", "internal/console", "internal/operator", "internal/wording"}},
		{path: "pkg/batch/web", may: []string{"pkg/batch", "pkg/batch/settings", "internal/api", "internal/operator", "internal/site"}},
		// Sentences for people, wherever they are shown.
		{path: "internal/wording/...", may: []string{model, ports, core, "internal/operator", "internal/refusal", "internal/humanize"}},
		{path: "pkg/batch/adaptor/engine/*/...", may: []string{core, tx, "internal/runtime/engine", ours}},
		{path: "pkg/batch/adaptor/item/skips", may: []string{core, model, ports}}, // reads the history
		{path: "pkg/batch/adaptor/*/*/...", may: []string{core, tx, ours}},
		{path: "pkg/batch/cli", may: []string{"pkg/batch", core, tx, "internal/cli/...", "internal/assembly"}},
		{path: "internal/assembly", may: append(layersInside(), "pkg/batch/adaptor/...", core, "pkg/batch/settings", ours)},
		{path: "pkg/batch", may: append(layersInside(), "pkg/batch/...", ours)},
		{path: "internal/conformance/..."}, // tests only
		{path: "internal/picture", std: true},
		{path: "internal/rules"}, // tests only
		{path: "internal/docgen", may: append(layersInside(), "pkg/batch/...", ours)},
		{path: "internal/errorclass/...", may: []string{core, "internal/dberr/..."}},
		{path: "internal/lease/...", may: []string{model, ports, core, "internal/boottime", "internal/errorclass"}},
		{path: "internal/runlog", may: []string{core, ports, "internal/panics"}, std: true},
		{path: "internal/series", may: []string{core}, std: true},
		{path: "internal/series/sampling", may: []string{core, model, ports, "internal/series", "internal/panics"}},
		{path: "internal/logfolder", may: []string{core, ports}, std: true},
		{path: "internal/gormtx/...", may: []string{tx, "internal/dberr/..."}},
		{path: "internal/pgxconn", may: []string{tx}},
		{path: "internal/migrator/...", may: []string{tx, "internal/dberr/...", "internal/sqlscript/..."}},
		{path: "internal/sqlscript/...", may: []string{tx}, std: true},
		{path: "internal/sqlerr", may: []string{core, tx, "internal/dberr/..."}},
		{path: "internal/jsonfile/...", may: []string{core, "internal/jsontext", "internal/partcount", "internal/filestream/...", "internal/nearest"}},
		{path: "internal/confine", may: []string{core, "internal/urlpath"}, std: true},
		{path: "internal/urlpath", std: true},
		{path: "internal/contrib", may: []string{core, "internal/urlpath"}},
		{path: "internal/place/...", may: []string{"internal/place", "internal/confine", "internal/nearest", "internal/urlpath", "internal/yamlfile"}, std: true},
		{path: "internal/filestream/...", may: []string{core, "internal/nearest", "internal/partcount", "internal/confine", "internal/place", "internal/urlpath"}},
		{path: "internal/process/...", may: []string{model, core, "internal/secret"}},
		{path: "internal/expression", may: []string{core, "internal/itemextra", "internal/gofield", "internal/jsontext", "internal/calendar", "internal/nearest"}},
		{path: "internal/sqlvalue/...", may: []string{core, tx, "internal/nearest", "internal/fault"}},
		{path: "internal/*/...", may: []string{core, "internal/nearest", "internal/fault"}},
		{path: "contrib/cmd/...", may: []string{"contrib", "pkg/batch/..."}},
		{path: "contrib/docgen", may: []string{"contrib", "internal/assembly", "internal/jobfile/docs", ours}},
		{path: "contrib", may: []string{"contrib/*"}},
		{path: "contrib/*", may: []string{core, tx, ours}},
		{path: "cmd/...", may: []string{"pkg/batch/..."}},
		{path: "example/...", may: []string{"pkg/batch/..."}},
	}...)
}

// excepted is an import that a room or a guarded library forbids, in a place that has a reason for it.
type excepted struct{ who, what, why string }

func exceptions() []excepted {
	return []excepted{
		{"pkg/batch/adaptor/observe/...:module.go", "go.uber.org/fx", "an observer adds itself to an application: package batch imports none that is heavy"},
		{"pkg/batch/adaptor/observe/...:module.go", "pkg/batch/settings", "an observer that adds itself reads its own settings"},
		{"contrib/*:module.go", "go.uber.org/fx", "a family adds itself to an application"},
		{"contrib/*:module.go", "internal/assembly", "a family adds itself to an application"},
		{"pkg/batch/adaptor/engine/river:module.go", "go.uber.org/fx", "River is heavy: an engine adds itself to an application"},
		{"pkg/batch/adaptor/engine/river:module.go", "pkg/batch/settings", "an engine that adds itself reads its own settings"},
	}
}

// A guarded library may be imported in some places only. A place is a pattern as in a room, or one with
// a file name after a colon.
type guarded struct {
	library string // and everything below it
	only    []string
}

func libraries() []guarded {
	assembly := []string{"contrib", "internal/assembly", "pkg/batch", "pkg/batch/cli", "cmd/...", "example/..."}
	gormPlaces := []string{"pkg/batch/repository/...", "pkg/batch/adaptor/database/...", "internal/gormtx/..."}
	drivers := []string{
		"pkg/batch/adaptor/database/...", "internal/migrator/...", "internal/dberr/...", "internal/pgxconn",
		"pkg/batch/adaptor/item/table/...", "pkg/batch/adaptor/item/query/...", "pkg/batch/adaptor/tasklet/sql/...",
		"pkg/batch/adaptor/tasklet/compare/...",
		"pkg/batch/adaptor/engine/river/...", "pkg/batch", // its options take an application's pool
	}
	screens := []string{"internal/cli/..."}
	yaml := []string{"internal/yamlfile/...", "internal/jobfile/..."}
	return []guarded{
		{"go.uber.org/fx", assembly},
		{"go.uber.org/dig", assembly},
		{"gopkg.in/yaml.v3", yaml},
		{"go.yaml.in/yaml", yaml},
		{"github.com/goccy/go-yaml", yaml},
		{"gorm.io", gormPlaces},
		{"github.com/golang-migrate/migrate", []string{"internal/migrator/..."}},
		{"github.com/jackc/pgx", drivers},
		{"modernc.org/sqlite", drivers},
		{"github.com/go-sql-driver/mysql", drivers},
		{"github.com/netresearch/go-cron", []string{"internal/schedule"}},
		{"github.com/expr-lang/expr", []string{"internal/expression/..."}},
		{"github.com/spf13/cobra", screens},
		{"github.com/vbauerster/mpb", screens},
		{"github.com/charmbracelet", screens},
		{"github.com/danielgtaylor/huma", []string{"internal/api/..."}},
		{"github.com/riverqueue/river", []string{"pkg/batch/adaptor/engine/river/..."}},
		{"github.com/prometheus", []string{"pkg/batch/adaptor/observe/prometheus/..."}},
		{"go.opentelemetry.io/otel", []string{"pkg/batch/adaptor/observe/otel/..."}},
		{"github.com/parquet-go", []string{"contrib/parquet"}},
		{"github.com/minio/minio-go", []string{"contrib/s3"}},
		{"github.com/stretchr/testify", nil},
		{"pgregory.net/rapid", nil},
		{"go.uber.org/goleak", nil},
		{"testing", nil},
	}
}

// heavy libraries must not be reachable from pkg/batch: their adaptors come
// through options.
func heavy() []string {
	return []string{
		"github.com/parquet-go/parquet-go", "github.com/xuri/excelize", "github.com/twmb/avro",
		"github.com/riverqueue/river", "go.opentelemetry.io/otel", "github.com/prometheus/client_golang",
	}
}

func TestNoPackageBreaksAnImportRule(t *testing.T) {
	t.Parallel()
	sources, err := readSources(root(t))
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	broken := violations(sources)
	require.Empty(t, broken, "forbidden imports (docs/architecture.md, Import rules):\n%s", strings.Join(broken, "\n"))
}

func TestEveryExceptionHasAReasonAndIsUsed(t *testing.T) {
	t.Parallel()
	sources, err := readSources(root(t))
	require.NoError(t, err)
	for _, e := range exceptions() {
		require.NotEmpty(t, e.why, "%s imports %s", e.who, e.what)
		require.True(t, slices.ContainsFunc(sources, func(s source) bool {
			return slices.ContainsFunc(s.imports, func(i string) bool { return e.allows(s, i) })
		}), "%s does not import %s: delete the exception", e.who, e.what)
	}
}

func TestAForbiddenImportIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, imports, want string }{
		{"pkg/batch/core/a.go", "fmt", ""},
		{"pkg/batch/core/a.go", module + "/pkg/batch/core/row", ""},
		{"pkg/batch/core/a.go", "gopkg.in/yaml.v3", "standard library only"},
		{"pkg/batch/core/a.go", module + "/pkg/batch/tx", "may not import pkg/batch/tx"},
		{"pkg/batch/core/exception/a.go", module + "/pkg/batch/core", "may not import pkg/batch/core"},
		{"pkg/batch/core/item/a.go", module + "/pkg/batch/core", "may not import pkg/batch/core"},
		{"pkg/batch/core/new/deep/a.go", "go.uber.org/fx", "standard library only"},
		{"pkg/batch/tx/a.go", module + "/pkg/batch/core", "may not import pkg/batch/core"},
		{"pkg/batch/chunk/a.go", module + "/pkg/batch/core/row", ""},
		{"pkg/batch/chunk/a.go", module + "/pkg/batch/step", "may not import pkg/batch/step"},
		{"pkg/batch/chunk/a.go", module + "/pkg/batch/chunk/buffer", ""},
		{"pkg/batch/step/a.go", module + "/pkg/batch/chunk", "may not import pkg/batch/chunk"},
		{"internal/job/a.go", module + "/pkg/batch/chunk", "may not import pkg/batch/chunk"},
		{"internal/runtime/a.go", module + "/pkg/batch/adaptor/engine/local", "may not import"},
		{"internal/runtime/engine/a.go", module + "/pkg/batch/core", "may not import pkg/batch/core"},
		{"internal/runtime/a.go", module + "/internal/runtime/engine", ""},
		{"pkg/batch/adaptor/engine/local/a.go", module + "/internal/runtime/engine", ""},
		{"pkg/batch/adaptor/engine/local/a.go", module + "/internal/runtime", "may not import internal/runtime"},
		{"pkg/batch/repository/a.go", "gorm.io/gorm/clause", ""},
		{"pkg/batch/chunk/a.go", "gorm.io/gorm", "gorm.io only in"},
		{"pkg/batch/adaptor/item/csv/a.go", module + "/pkg/batch/core", ""},
		{"pkg/batch/adaptor/item/csv/a.go", module + "/pkg/batch/adaptor/item/json", "may not import"},
		{"pkg/batch/adaptor/item/csv/a.go", module + "/pkg/batch", "may not import pkg/batch"},
		{"pkg/batch/adaptor/observe/otel/module.go", "go.uber.org/fx", ""},
		{"pkg/batch/adaptor/item/csv/module.go", "go.uber.org/fx", "go.uber.org/fx only in"},
		{"pkg/batch/core/registry/a.go", module + "/pkg/batch/tx", ""},
		{"pkg/batch/adaptor/item/csv/a.go", "go.uber.org/fx", "go.uber.org/fx only in"},
		{"pkg/batch/adaptor/item/csv/a.go", module + "/internal/testdb", "from tests only"},
		{"pkg/batch/adaptor/item/csv/a.go", module + "/internal/testkit/txtest", "from tests only"},
		{"pkg/batch/adaptor/item/csv/a.go", "github.com/stretchr/testify/require", "testify only in tests"},
		{"pkg/batch/adaptor/item/csv/a_test.go", "github.com/stretchr/testify/require", ""},
		{"pkg/batch/adaptor/item/csv/a_test.go", module + "/internal/testdb", ""},
		{"internal/testkit/txtest/a.go", "github.com/stretchr/testify/require", ""},
		{"internal/testkit/txtest/a.go", module + "/internal/testdb", ""},
		{"internal/jobfile/a.go", module + "/pkg/batch/adaptor/item/csv", "may not import"},
		{"pkg/batch/adaptor/item/csv/a.go", module + "/internal/job", "may not import"},
		{"pkg/batch/adaptor/item/table/a.go", "gorm.io/gorm", "gorm.io only in"},
		{"pkg/batch/adaptor/console/a.go", "fmt", "has no room"},
		{"pkg/batch/settings/a.go", "github.com/goccy/go-yaml", "only in"},
		{"pkg/batch/settings/a.go", "gopkg.in/yaml.v3", "gopkg.in/yaml.v3 only in"},
		{"internal/operator/a.go", module + "/pkg/batch/batchtest", "from tests only"},
		{"pkg/batch/batchtest/a.go", "testing", ""},
		{"internal/conformance/a.go", "testing", "testing only in tests"},
		{"pkg/batch/adaptor/observe/otel/a.go", module + "/pkg/batch/settings", "may not import"},
		{"internal/cli/a.go", module + "/internal/operator", ""},
		{"internal/cli/a.go", module + "/internal/job", "may not import"},
		{"internal/cli/a.go", module + "/pkg/batch/chunk", "may not import"},
		{"internal/cli/a.go", module + "/pkg/batch/step", "may not import"},
		{"internal/cli/a.go", module + "/pkg/batch/repository", "may not import"},
		{"internal/operator/a.go", module + "/internal/cli", "may not import"},
		{"pkg/batch/settings/a.go", module + "/internal/jobfile", "may not import"},
		{"internal/api/a.go", module + "/internal/operator", ""},
		{"internal/api/a.go", module + "/internal/job", "may not import"},
		{"internal/api/a.go", module + "/pkg/batch/repository", "may not import"},
		{"internal/cli/a.go", "github.com/danielgtaylor/huma/v2", "only in internal/api"},
		{"internal/cli/a.go", "gopkg.in/yaml.v3", "gopkg.in/yaml.v3 only in"},
		{"pkg/batch/a.go", "github.com/parquet-go/parquet-go", "heavy"},
		{"pkg/batch/a.go", "github.com/riverqueue/river", "heavy"},
		{"pkg/batch/adaptor/engine/local/a.go", "github.com/riverqueue/river/rivertype", "only in pkg/batch/adaptor/engine/river"},
		{"pkg/batch/adaptor/item/csv/a.go", "github.com/expr-lang/expr", "only in internal/expression"},
		{"pkg/batch/adaptor/observe/otel/module.go", module + "/pkg/batch/settings", ""},
		{"pkg/batch/adaptor/observe/otel/a.go", module + "/pkg/batch/adaptor/observe/slog", "may not import"},
		{"pkg/batch/adaptor/observe/slog/a.go", "go.opentelemetry.io/otel/trace", "only in pkg/batch/adaptor/observe/otel"},
		{"pkg/batch/chunk/a.go", "github.com/prometheus/client_golang/prometheus", "only in pkg/batch/adaptor/observe/prometheus"},
		{"internal/filestream/a.go", module + "/pkg/batch/adaptor/item/csv", "may not import"},
		{"cmd/surfin/main.go", module + "/internal/expression", "may not import"},
		{"contrib/parquet/a.go", module + "/internal/filestream", ""},
		{"contrib/parquet/a.go", module + "/internal/assembly", "may not import"},
		{"contrib/s3/a.go", "github.com/minio/minio-go/v7", ""},
		{"contrib/s3/a.go", module + "/contrib/parquet", "may not import"},
		{"contrib/s3/a.go", "github.com/parquet-go/parquet-go", "only in contrib/parquet"},
		{"example/hello/main.go", module + "/pkg/batch", ""},
		{"pkg/other/a.go", "fmt", "has no room"},
	} {
		dir, name := path.Split(c.file)
		got := violations([]source{{dir: path.Clean(dir), name: name, imports: []string{c.imports}}})
		if c.want == "" {
			require.Empty(t, got, "%s imports %s", c.file, c.imports)
			continue
		}
		require.Len(t, got, 1, "%s imports %s", c.file, c.imports)
		require.Contains(t, got[0], c.want)
	}
}

func TestAHeavyLibraryIsFoundBehindAnAdaptor(t *testing.T) {
	t.Parallel()
	got := violations([]source{
		{dir: "pkg/batch", name: "module.go", imports: []string{module + "/pkg/batch/adaptor/item/parquet"}},
		{dir: "pkg/batch/adaptor/item/parquet", name: "a.go", imports: []string{"github.com/parquet-go/parquet-go"}},
	})
	require.Len(t, got, 1)
	require.Contains(t, got[0], "reachable from pkg/batch")
}

func TestTheFacadeReachesNoLibraryOfACommandLineOrOfPages(t *testing.T) {
	t.Parallel()
	out, err := testtree.Command(t.Context(), "go", "list", "-deps", "../../pkg/batch").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	require.Contains(t, packages, module+"/internal/operator")
	for _, p := range packages {
		require.NotEqual(t, module+"/internal/cli", p)
		for _, screen := range []string{"github.com/spf13/cobra", "github.com/charmbracelet", "github.com/vbauerster/mpb", "github.com/danielgtaylor/huma", "html/template", module + "/internal/access", module + "/internal/api", module + "/internal/console"} {
			require.False(t, within(p, screen), "pkg/batch imports %s", p)
		}
	}
}

func TestSourcesAreReadFromTheTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("pkg/batch/step/a.go", "//go:build never\n\npackage step\n\nimport _ \""+module+"/pkg/batch/chunk\"\n")
	write("pkg/batch/step/testdata/b.go", "this is no Go")
	write("tools/go.mod", "module tools\n")
	write("tools/a.go", "package tools\n\nimport _ \"gorm.io/gorm\"\n")
	sources, err := readSources(dir)
	require.NoError(t, err)
	require.Len(t, sources, 1, "build constraints do not hide a file; testdata and other modules are not ours")
	require.Len(t, violations(sources), 1)
}

func violations(sources []source) []string {
	reachable := reach(sources, "pkg/batch")
	var out []string
	for _, s := range sources {
		if strings.HasSuffix(s.name, "_test.go") {
			continue // a test may use whatever it needs
		}
		r, ok := roomOf(s.dir)
		if !ok {
			out = append(out, fmt.Sprintf("%s/%s: package %s has no room in the table of rules", s.dir, s.name, s.dir))
			continue
		}
		for _, imported := range s.imports {
			if why := forbidden(s, r, imported, reachable); why != "" {
				out = append(out, fmt.Sprintf("%s/%s: %s", s.dir, s.name, why))
			}
		}
	}
	slices.Sort(out)
	return out
}

// forbidden returns why the import is not allowed; empty if it is.
func forbidden(s source, r room, imported string, reachable map[string]bool) string {
	for _, h := range heavy() {
		if reachable[s.dir] && within(imported, h) {
			return fmt.Sprintf("%s is heavy and reachable from pkg/batch", imported)
		}
	}
	if r.kit || slices.ContainsFunc(exceptions(), func(e excepted) bool { return e.allows(s, imported) }) {
		return ""
	}
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		return forbiddenOfOurs(s.dir, r, ours)
	}
	if first, _, _ := strings.Cut(imported, "/"); r.std && strings.Contains(first, ".") {
		return fmt.Sprintf("%s is of the standard library only, but imports %s", s.dir, imported)
	}
	for _, l := range libraries() {
		if within(imported, l.library) && !slices.ContainsFunc(l.only, s.isIn) {
			return fmt.Sprintf("%s imports %s: %s only in %s", s.dir, imported, l.library, cmp.Or(strings.Join(l.only, ", "), "tests"))
		}
	}
	return ""
}

func forbiddenOfOurs(dir string, r room, ours string) string {
	if isTestKit(ours) {
		return fmt.Sprintf("%s imports %s, which is imported from tests only", dir, ours)
	}
	if within(ours, ownFolder(r.path, dir)) || slices.ContainsFunc(r.may, func(p string) bool { return admits(p, ours) }) {
		return ""
	}
	return fmt.Sprintf("%s may not import %s (allowed: %s)", dir, ours, strings.Join(r.may, ", "))
}

func (e excepted) allows(s source, imported string) bool {
	return s.isIn(e.who) && (within(imported, e.what) || within(imported, module+"/"+e.what))
}

func isTestKit(dir string) bool {
	r, ok := roomOf(dir)
	return ok && r.kit
}

func roomOf(dir string) (room, bool) {
	all := rooms()
	i := slices.IndexFunc(all, func(r room) bool { return match(r.path, dir) })
	if i < 0 {
		return room{}, false
	}
	return all[i], true
}

func (s source) isIn(place string) bool {
	place, name, hasName := strings.Cut(place, ":")
	return match(place, s.dir) && (!hasName || name == s.name)
}

func match(pattern, dir string) bool {
	prefix, below := strings.CutSuffix(pattern, "/...")
	if !below {
		ok, err := path.Match(pattern, dir)
		return ok && err == nil
	}
	return match(prefix, ownFolder(pattern, dir))
}

// ownFolder returns the part of dir that the pattern names, without the folders below it.
func ownFolder(pattern, dir string) string {
	depth := strings.Count(strings.TrimSuffix(pattern, "/..."), "/") + 1
	parts := strings.Split(dir, "/")
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func reach(sources []source, start string) map[string]bool {
	imports := map[string][]string{}
	for _, s := range sources {
		if !strings.HasSuffix(s.name, "_test.go") {
			imports[s.dir] = append(imports[s.dir], s.imports...)
		}
	}
	seen, todo := map[string]bool{}, []string{start}
	for len(todo) > 0 {
		dir := todo[0]
		todo = todo[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		for _, i := range imports[dir] {
			if ours, ok := strings.CutPrefix(i, module+"/"); ok {
				todo = append(todo, ours)
			}
		}
	}
	return seen
}
