// Package settings reads an application's configuration except job files. Flags win over the environment
// (SURFIN_*, DATABASE_URL), over surfin.yaml, over defaults; none is needed.
//
// It imports core, tx, internal/place, internal/secret, internal/smallfile and libraries. The YAML that it reads is
// surfin.yaml.
package settings

import (
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// FileName is read from the working directory.
const FileName = "surfin.yaml"

// Settings are one process's.
type Settings struct {
	// File is the absolute path of the file read, or "".
	File string
	// Databases by name; tx.Default always exists.
	Databases   map[string]Database
	Repository  Repository
	AutoMigrate AutoMigrate
	// Lease is how long an execution stays its process's after a heartbeat (rule L2).
	Lease, Heartbeat time.Duration
	Engine           Engine
	River            River
	Log              Log
	Metrics          Metrics
	Traces           Traces
	Files            Files
	Tasks            Tasks
	Worker           Worker
	API              API
	Health           Health
	// Places are the settings of places other than the disk.
	Places []place.Setting
	// Secrets finds and masks job files' secrets; may be nil.
	Secrets  *secret.Vault
	Warnings []string
}

// Database is one configured database.
type Database struct {
	// URL is sqlite: with an absolute path, or postgres://...
	URL string
	// MaxOpen bounds the data pool; 0 means the dialect's default.
	MaxOpen int
	// Origin of the URL, such as DATABASE_URL; empty for the default.
	Origin string
}

// Repository locates the history.
type Repository struct {
	Database string
	Prefix   string
}

// Engine delivers work to workers.
type Engine struct {
	Name string
	// Origin of the name, such as FILE:LINE:COLUMN; empty for the default.
	Origin string
}

// The engines.
const (
	EngineLocal = "local" // workers poll the tables
	EngineRiver = "river" // River on PostgreSQL
)

// River configures the engine river.
type River struct {
	// Schema has River's tables only.
	Schema string
	// Listen wakes workers by notifications, else they poll.
	Listen bool
	// Poll is an idle worker's interval.
	Poll time.Duration
}

// Log configures standard error.
type Log struct {
	Level  string
	Format string
	// Events is an absolute path for events as lines of JSON; empty means none.
	Events string
	// ExecutionBytes bounds the log of each execution in the history (rule LG3); 0 means 4 MB, a negative number
	// means that none is kept.
	ExecutionBytes int64
}

// Metrics configures Prometheus; zero offers none.
type Metrics struct {
	// Listen is HOST:PORT for /metrics; empty means none.
	Listen string
	// Textfile is the absolute path NAME.prom for node_exporter; empty means none.
	Textfile string
	// Every is the interval of the text file.
	Every time.Duration
}

// Traces configures traces.
type Traces struct {
	// Endpoint is an OTLP/HTTP URL; if empty, OTEL_ variables decide.
	Endpoint string
	Chunks   int
}

// Files configures the creation of files.
type Files struct {
	// Mode is for created files: SQLite database, event log, outputs. Existing ones keep theirs.
	Mode fs.FileMode
}

// Tasks are the settings of tasks.
type Tasks struct {
	// Logs is the folder for old log text; "" keeps it in the database.
	Logs string
	// Secrets are for tasks of type http_request.
	Secrets []TaskSecret
	// Shell enables tasks of type shell: submitters can run anything as the worker's user.
	Shell bool
}

// Worker configures 'worker' and 'serve --worker'.
type Worker struct {
	Labels map[string]string
}

// TaskSecret is a secret that tasks may send to a host.
type TaskSecret struct {
	Name string
	// Host is HOST or HOST:PORT, as in the task's URL.
	Host string
}

// AutoMigrate is when the schema is migrated on start.
type AutoMigrate string

// The values of AutoMigrate.
const (
	MigrateSQLite AutoMigrate = "sqlite" // no other process can do it
	MigrateAlways AutoMigrate = "true"
	MigrateNever  AutoMigrate = "false"
)

// Applies reports whether this dialect is migrated on start.
func (a AutoMigrate) Applies(d tx.Dialect) bool {
	return a == MigrateAlways || a == MigrateSQLite && d == tx.SQLite
}

// Names returns the databases' names, sorted.
func (s Settings) Names() []string {
	var names []string
	for name := range s.Databases {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// String describes the database without password and options.
func (d Database) String() string {
	if path, ok := sqlitePath(d.URL); ok {
		path, _, _ = strings.Cut(path, "?")
		return "sqlite " + path
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		scheme, _, _ := strings.Cut(d.URL, ":")
		return scheme
	}
	text := "postgres "
	if u.Scheme == "mysql" {
		text = "mysql "
	}
	if name := u.User.Username(); name != "" {
		text += name + "@"
	}
	host := u.Host
	if host == "" {
		host = u.Query().Get("host")
	}
	return text + host + u.Path
}

func (s Settings) learn(vault *secret.Vault) {
	for _, name := range s.Names() {
		vault.LearnURL("database "+name, s.Databases[name].URL)
	}
	for _, c := range s.API.Clients {
		vault.Learn("the token of client "+c.Name, c.Token)
	}
	vault.LearnURL("traces.endpoint", s.Traces.Endpoint)
}

func sqlitePath(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "sqlite:")
	if !ok {
		return "", false
	}
	if abs, ok := strings.CutPrefix(rest, "//"); ok && strings.HasPrefix(abs, "/") {
		rest = abs
	}
	return rest, true
}

// Wanted reports whether metrics are offered.
func (m Metrics) Wanted() bool { return m.Listen != "" || m.Textfile != "" }

// Wanted reports whether traces are sent, by endpoint or OTEL_ variables. A protocol other than http/protobuf
// is an error.
func (t Traces) Wanted(getenv func(string) string) (bool, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"), exporter == "none":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not known (known: otlp, none)", exporter)
	case t.Endpoint == "" && exporter == "" && first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") == "":
		return false, nil
	}
	if p := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not known (known: http/protobuf)", p)
	}
	return true, nil
}
