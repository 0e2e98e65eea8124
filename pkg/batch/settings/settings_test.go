package settings

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600))
	return dir
}

func TestDefaultsNeedNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Load(Source{Dir: dir})
	require.NoError(t, err)
	require.NotNil(t, s.Secrets)
	s.Secrets = nil
	require.Equal(t, Settings{
		Databases:   map[string]Database{tx.Default: {URL: "sqlite:" + filepath.Join(dir, "surfin.db")}},
		Repository:  Repository{Database: tx.Default, Prefix: "surfin_"},
		AutoMigrate: MigrateSQLite,
		Lease:       30 * time.Second, Heartbeat: 5 * time.Second,
		Engine: Engine{Name: EngineLocal}, River: River{Schema: "surfin_river", Listen: true, Poll: time.Second},
		Log: Log{Level: "info", Format: "text", ExecutionBytes: 4 << 20}, Metrics: Metrics{Every: 15 * time.Second}, Traces: Traces{Chunks: 1000},
		Files: Files{Mode: 0o600}, API: API{Listen: "127.0.0.1:8321", Rate: 50},
	}, s)
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	t.Parallel()
	dir := write(t, "lease: 1m\nheartbeat: 2s\nlog: {level: warn, format: json}\n")
	s, err := Load(Source{
		Dir:     dir,
		Environ: []string{"SURFIN_HEARTBEAT=3s", "SURFIN_LOG_LEVEL=error", "PATH=/bin", "SURFIN_LOG_FORMAT="},
		Flags:   []Flag{{"--log-level", "log.level", "debug"}},
	})
	require.NoError(t, err)
	require.Equal(t, Log{Level: "debug", Format: "json", ExecutionBytes: 4 << 20}, s.Log, "an empty variable says nothing")
	require.Equal(t, 3*time.Second, s.Heartbeat)
	require.Equal(t, time.Minute, s.Lease)
	require.Equal(t, filepath.Join(dir, FileName), s.File)
}

func TestDatabasesAreNamedWithUrlOrMore(t *testing.T) {
	t.Parallel()
	dir := write(t, `
databases:
  default: sqlite:data/history.db
  orders:
    url: postgres://me:secret@db.example.org:5433/orders?sslmode=disable
    max_open: 20
repository: {database: orders, prefix: batch_}
auto_migrate: true
`)
	s, err := Load(Source{Dir: t.TempDir(), File: filepath.Join(dir, FileName), Environ: []string{
		"SURFIN_DATABASES_SCRATCH=sqlite:scratch.db", "SURFIN_DATABASES_SCRATCH_MAX_OPEN=3"}})
	require.NoError(t, err)
	require.Equal(t, []string{"default", "orders", "scratch"}, s.Names())
	require.Equal(t, "sqlite:"+filepath.Join(dir, "data", "history.db"), s.Databases["default"].URL, "relative to the file that says it")
	require.Equal(t, filepath.Join(dir, FileName)+":3:12", s.Databases["default"].Origin)
	require.Equal(t, 20, s.Databases["orders"].MaxOpen)
	require.Equal(t, 3, s.Databases["scratch"].MaxOpen)
	require.Equal(t, "postgres me@db.example.org:5433/orders", s.Databases["orders"].String(), "no password")
	require.Equal(t, Repository{Database: "orders", Prefix: "batch_"}, s.Repository)
	require.True(t, s.AutoMigrate.Applies(tx.Postgres))
}

func TestDefaultDatabaseLiesBesideSurfinYaml(t *testing.T) {
	t.Parallel()
	dir := write(t, "log: {level: info}\n")
	s, err := Load(Source{Dir: t.TempDir(), File: filepath.Join(dir, FileName)})
	require.NoError(t, err)
	require.Equal(t, "sqlite:"+filepath.Join(dir, "surfin.db"), s.Databases[tx.Default].URL)
	require.Empty(t, s.Databases[tx.Default].Origin)
}

func TestDatabaseUrlIsForTheDefaultDatabase(t *testing.T) {
	t.Parallel()
	src := Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=postgres://h/d"}}
	s, err := Load(src)
	require.NoError(t, err)
	require.Equal(t, Database{URL: "postgres://h/d", Origin: "DATABASE_URL"}, s.Databases[tx.Default])

	src.Environ = append(src.Environ, "SURFIN_DATABASES_DEFAULT=postgres://h/more")
	s, err = Load(src)
	require.NoError(t, err)
	require.Equal(t, Database{URL: "postgres://h/more", Origin: "SURFIN_DATABASES_DEFAULT"}, s.Databases[tx.Default])
}

func TestEverythingWrongIsReportedTogetherWithItsPlace(t *testing.T) {
	t.Parallel()
	dir := write(t, `databases:
  default: oracle://h/d
  orders: {max_opne: 3}
log:
  levle: info
lease: 5
colour: red
`)
	file := filepath.Join(dir, FileName)
	_, err := Load(Source{Dir: dir, Environ: []string{"SURFIN_LOG_FORMAT=xml"}, Flags: []Flag{{"--heartbeat", "heartbeat", "-1s"}}})
	require.EqualError(t, err, file+`:3:12: unknown key databases.orders.max_opne (allowed: max_open, url)
    3 |   orders: {max_opne: 3}
      |            ^
`+file+`:5:3: unknown key log.levle (allowed: level, format, events, execution_bytes)
    5 |   levle: info
      |   ^
`+file+`:7:1: unknown key colour (allowed: api, auto_migrate, databases, engine, files, health, heartbeat, lease, log, metrics, places, repository, river, secrets, tasks, traces, worker)
    7 | colour: red
      | ^
`+file+`:6:8: lease: "5" is not a duration above zero (such as 30s, 5m)
    6 | lease: 5
      |        ^
--heartbeat: heartbeat: "-1s" is not a duration above zero (such as 30s, 5m)
SURFIN_LOG_FORMAT: log.format: "xml" is not allowed (allowed: text, json)
`+file+`:2:12: databases.default.url: oracle: databases of this kind are not known (known: sqlite:PATH, postgres://USER:PASSWORD@HOST/NAME or mysql://USER:PASSWORD@HOST/NAME)
    2 |   default: oracle://h/d
      |            ^`)
}

func TestPathsOfObservationAreRelativeToWhereTheyAreSaid(t *testing.T) {
	t.Parallel()
	dir, work := write(t, "log: {events: log/events.jsonl}\nmetrics: {listen: \":9464\", textfile: surfin.prom, every: 1m}\ntraces: {chunks: 0}\n"), t.TempDir()
	s, err := Load(Source{Dir: work, File: filepath.Join(dir, FileName), Environ: []string{
		"SURFIN_LOG_EVENTS=events.jsonl", "SURFIN_TRACES_ENDPOINT=http://localhost:4318"}})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	require.Equal(t, filepath.Join(work, "events.jsonl"), s.Log.Events)
	require.Equal(t, Metrics{Listen: ":9464", Textfile: filepath.Join(dir, "surfin.prom"), Every: time.Minute}, s.Metrics)
	require.Equal(t, Traces{Endpoint: "http://localhost:4318"}, s.Traces)
}

func TestWhatCannotBeObservedIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"metrics: {listen: \"9464\"}":            `"9464" is not HOST:PORT`,
		"metrics: {listen: \"localhost:http\"}":  "is not HOST:PORT",
		"metrics: {textfile: surfin.txt}":        "does not end in .prom",
		"metrics: {every: 0s}":                   "is not a duration above zero",
		"traces: {endpoint: \"localhost:4318\"}": "is not the URL of a receiver",
		"traces: {chunks: -1}":                   "is not a number of spans",
	} {
		_, err := Load(Source{Dir: write(t, text)})
		require.ErrorContains(t, err, want, text)
	}
}

func TestBrokenYamlIsReportedAtItsPlace(t *testing.T) {
	t.Parallel()
	dir := write(t, "lease: 1m\nlog: {level: info\nheartbeat: 1s\n")
	_, err := Load(Source{Dir: dir})
	require.ErrorContains(t, err, FileName+":3:1: this is not YAML: did not find expected ',' or '}'")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Excerpt)
}

func TestDuplicateKeysAreRefused(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{Dir: write(t, "lease: 1m\nlease: 2m\n")})
	require.ErrorContains(t, err, FileName+":2:1")
}

func TestRelationsBetweenSettingsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{Dir: write(t, "repository: {database: history}\nheartbeat: 20s\n")})
	require.ErrorContains(t, err, `there is no database "history" (there are: default)`)
	require.ErrorContains(t, err, "a heartbeat of 20s must be at most half of the lease of 30s")
}

func TestUnknownVariablesAreNamedNotRefused(t *testing.T) {
	t.Parallel()
	s, err := Load(Source{Dir: t.TempDir(), Environ: []string{"SURFIN_LOGLEVEL=debug", "SURFIN_SECRET_TOKEN=x", "SURFIN_TEST_POSTGRES=y"}})
	require.NoError(t, err)
	require.Equal(t, []string{"SURFIN_LOGLEVEL is not a setting and was ignored (surfin help settings lists them)"}, s.Warnings)
}

func TestNamedFileMustExist(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{Dir: t.TempDir(), File: "other.yaml"})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSqlitePathsInAllForms(t *testing.T) {
	t.Parallel()
	abs := filepath.Join(t.TempDir(), "x.db")
	require.Equal(t, "sqlite:"+abs, absolute("sqlite://"+abs, "/elsewhere"))
	require.Equal(t, "sqlite:"+abs, absolute("sqlite:"+abs, "/elsewhere"))
	require.Equal(t, "sqlite:"+abs, absolute("sqlite:x.db", filepath.Dir(abs)))
	require.Equal(t, "postgres://h/d", absolute("postgres://h/d", "/elsewhere"))
	require.Equal(t, "sqlite "+abs, Database{URL: "sqlite:" + abs + "?_pragma=x"}.String())
}

func FuzzSettingsFileNeverPanics(f *testing.F) {
	f.Add("databases: {default: sqlite:x.db}\nlog:\n  level: info\n")
	f.Add("? [a]\n: b\n")
	f.Add("a: &x {b: *x}\n")
	f.Fuzz(func(_ *testing.T, text string) { parse("f", []byte(text)) })
}

func TestFoldersOfClientsMayBeURLs(t *testing.T) {
	t.Parallel()
	s, err := Load(Source{Dir: t.TempDir(), Environ: []string{"SURFIN_API_PATHS=/data/in:S3://Lake/In/:/tmp:s3://b"}})
	require.NoError(t, err)
	require.Equal(t, []string{"/data/in", "s3://lake/In", "/tmp", "s3://b"}, s.API.Paths)
	_, err = Load(Source{Dir: t.TempDir(), Environ: []string{"SURFIN_API_PATHS=/data:s3:/x"}})
	require.ErrorContains(t, err, `"s3" is not an absolute path`)
}
