package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type setting struct {
	key, fallback, doc string
	set                func(s *Settings, text string) error
}

// Except the databases', in the help's order.
func catalog() []setting {
	return append([]setting{
		{"repository.database", tx.Default, "name of the database with the history of executions",
			func(s *Settings, text string) error { s.Repository.Database = text; return nil }},
		{"repository.prefix", "surfin_", "prefix of the history's tables",
			func(s *Settings, text string) error { s.Repository.Prefix = text; return nil }},
		{"auto_migrate", string(MigrateSQLite), "make or update the history's tables on start: true, false, or sqlite (only there)",
			func(s *Settings, text string) error {
				s.AutoMigrate = AutoMigrate(text)
				return oneOf(text, string(MigrateAlways), string(MigrateNever), string(MigrateSQLite))
			}},
		{"lease", "30s", "an execution whose process gave no sign for so long may be taken over; the process ends its work after two thirds of it",
			func(s *Settings, text string) (err error) { s.Lease, err = duration(text); return err }},
		{"heartbeat", "5s", "time between two signs of life; at most half of the lease",
			func(s *Settings, text string) (err error) { s.Heartbeat, err = duration(text); return err }},
		{"engine", EngineLocal, "what brings work to workers: local (they look at the tables), or river (River on PostgreSQL, for many machines)",
			func(s *Settings, text string) error {
				s.Engine.Name = text
				return oneOf(text, EngineLocal, EngineRiver)
			}},
		{"river.schema", "surfin_river", "schema for the tables of the engine river, and for nothing else; River of the application's own needs another one",
			func(s *Settings, text string) error { s.River.Schema = text; return schemaName(text) }},
		{"river.listen", "true", "workers of the engine river are woken by notifications; false where a pooler or proxy lets none through: they look every river.poll then",
			func(s *Settings, text string) (err error) { s.River.Listen, err = yesOrNo(text); return err }},
		{"river.poll", "1s", "time between two looks of an idle worker of the engine river",
			func(s *Settings, text string) (err error) { s.River.Poll, err = duration(text); return err }},
		{"log.level", "info", "debug, info, warn or error",
			func(s *Settings, text string) error {
				s.Log.Level = text
				return oneOf(text, "debug", "info", "warn", "error")
			}},
		{"log.format", "text", "text or json",
			func(s *Settings, text string) error { s.Log.Format = text; return oneOf(text, "text", "json") }},
		{"log.events", "", "file to which every event is appended as a line of JSON",
			func(s *Settings, text string) error { s.Log.Events = text; return nil }},
		{"log.execution_bytes", "4194304", "most bytes that the history keeps of the log of one execution (surfin log); 0: it keeps none",
			func(s *Settings, text string) (err error) { s.Log.ExecutionBytes, err = logBytes(text); return err }},
		{"files.mode", "0600", "permissions of the files that are made: an SQLite database, the event log, outputs",
			func(s *Settings, text string) (err error) { s.Files.Mode, err = fileMode(text); return err }},
		{"tasks.logs", "", "folder to which log text of tasks moves that is older than log_retention_days_db (surfin settings); empty: it stays in the database",
			func(s *Settings, text string) error { s.Tasks.Logs = text; return nil }},
		{"tasks.shell", "false", "workers execute tasks of type shell; whoever may submit tasks then runs anything that the user of the worker may",
			func(s *Settings, text string) (err error) { s.Tasks.Shell, err = yesOrNo(text); return err }},
		{"tasks.secrets", "", "secrets that tasks of type http_request may name, each with the host that it is sent to: NAME@HOST or NAME@HOST:PORT, separated by commas; without it tasks can name none",
			func(s *Settings, text string) (err error) { s.Tasks.Secrets, err = taskSecrets(text); return err }},
		{"worker.labels", "", "labels of the workers of this process, KEY=VALUE separated by commas, such as disk=eu1,zone=a: work that says 'on: {disk: eu1}' runs on workers with that label only",
			func(s *Settings, text string) (err error) { s.Worker.Labels, err = labels(text); return err }},
		{"metrics.listen", "", "HOST:PORT at which a job that runs offers /metrics to Prometheus",
			func(s *Settings, text string) error { s.Metrics.Listen = text; return listenAddress(text) }},
		{"metrics.textfile", "", "file NAME.prom for the text file collector of node_exporter; jobs add up in it",
			func(s *Settings, text string) error { s.Metrics.Textfile = text; return textfileName(text) }},
		{"metrics.every", "15s", "time between two writings of metrics.textfile",
			func(s *Settings, text string) (err error) { s.Metrics.Every, err = duration(text); return err }},
		{"traces.endpoint", "", "URL of an OTLP/HTTP receiver of traces; empty: as the OTEL_ variables say",
			func(s *Settings, text string) error { s.Traces.Endpoint = text; return receiverURL(text) }},
		{"traces.chunks", "1000", "most chunk spans of one step; 0: none",
			func(s *Settings, text string) (err error) {
				if s.Traces.Chunks, err = strconv.Atoi(text); err != nil || s.Traces.Chunks < 0 {
					return fmt.Errorf("%q is not a number of spans", text)
				}
				return nil
			}},
	}, append(apiSettings(), proxySettings()...)...)
}

func apiSettings() []setting {
	return []setting{
		{"api.listen", "127.0.0.1:8321", "HOST:PORT of `surfin serve`; without tokens a loopback address",
			func(s *Settings, text string) error {
				s.API.Listen = text
				if text == "" {
					return errors.New("it is empty: HOST:PORT is needed")
				}
				return listenAddress(text)
			}},
		{"health.listen", "", "HOST:PORT at which a worker answers `/livez` and `/readyz`, without a token; empty: nowhere. `surfin serve` answers them at api.listen",
			func(s *Settings, text string) error {
				if s.Health.Listen = text; text == "" {
					return nil
				}
				return listenAddress(text)
			}},
		{"api.paths", "", "folders that the paths of clients may be in, in addition to the folder of the job file: absolute, or `s3://bucket/folder`, separated by `:`; none is the default",
			func(s *Settings, text string) (err error) {
				s.API.Paths, err = foldersOf(text)
				return err
			}},
		{"api.rate", "50", "requests a second that one client of the API may make",
			func(s *Settings, text string) (err error) {
				if s.API.Rate, err = strconv.Atoi(text); err != nil || s.API.Rate < 1 || s.API.Rate > 1e6 {
					return fmt.Errorf("%q is not a number of requests from 1 to 1000000", text)
				}
				return nil
			}},
	}
}

// foldersOf knows that the colon of a URL separates nothing.
func foldersOf(text string) (folders []string, err error) {
	list := filepath.SplitList(text)
	for i := 0; i < len(list); i++ {
		path := list[i]
		if i+1 < len(list) && slices.Contains(urlpath.Schemes(), strings.ToLower(path)) && strings.HasPrefix(list[i+1], "//") {
			i++
			url, err := urlpath.Folder(path + ":" + list[i])
			if err != nil {
				return nil, err
			}
			folders = append(folders, url)
			continue
		}
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%q is not an absolute path (folders are separated by %c)", path, filepath.ListSeparator)
		}
		folders = append(folders, filepath.Clean(path))
	}
	return folders, nil
}

func databaseSettings(name string) []setting {
	change := func(s *Settings, f func(*Database)) {
		d := s.Databases[name]
		f(&d)
		s.Databases[name] = d
	}
	return []setting{
		{"databases." + name + ".url", "", knownURLs,
			func(s *Settings, text string) error {
				change(s, func(d *Database) { d.URL = text })
				return checkURL(text)
			}},
		{"databases." + name + ".max_open", "0", "most open connections for data; 0: chosen by the dialect",
			func(s *Settings, text string) error {
				n, err := strconv.Atoi(text)
				if err != nil || n < 0 {
					return fmt.Errorf("%q is not a number of connections", text)
				}
				change(s, func(d *Database) { d.MaxOpen = n })
				return nil
			}},
	}
}

// Reference lists key, environment variable, default and meaning of each setting.
func Reference() [][4]string {
	rows := [][4]string{
		{"databases.NAME", "SURFIN_DATABASES_NAME", "", "URL of a database: " + knownURLs + " (MySQL 8 and MariaDB)"},
		{"databases.default", "DATABASE_URL", "sqlite:surfin.db", "URL of the database that is meant where none is named"},
		{"databases.NAME.max_open", "SURFIN_DATABASES_NAME_MAX_OPEN", "0", databaseSettings("NAME")[1].doc},
	}
	for _, c := range catalog() {
		rows = append(rows, [4]string{c.key, variable(c.key), c.fallback, c.doc})
	}
	for _, section := range sortedKeys(tokenSections()) {
		doc := fmt.Sprintf("token of a client of the API with the role %s: a secret of at least %d characters", tokenSections()[section], minToken)
		rows = append(rows, [4]string{section + ".NAME", variable(section) + "_NAME", "", doc})
	}
	return append(rows,
		[4]string{"secrets.NAME.file", "SURFIN_SECRET_NAME", "", "file with the secret ${secret.NAME} of job files, relative to surfin.yaml; the variable has the secret itself, and " + secret.Folder + "/NAME wins over surfin.yaml"},
		[4]string{"secrets.NAME.command", "", "", "list of a program and its arguments that prints the secret ${secret.NAME}"})
}

func variable(key string) string {
	return "SURFIN_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func taskSecrets(text string) ([]TaskSecret, error) {
	var list []TaskSecret
	for _, entry := range strings.Split(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, host, _ := strings.Cut(entry, "@")
		if !secretName.MatchString(name) || host == "" || strings.ContainsAny(host, "/@ ") {
			return nil, fmt.Errorf("%q is not NAME@HOST, such as billing@api.example.org", entry)
		}
		list = append(list, TaskSecret{name, strings.ToLower(host)})
	}
	return list, nil
}

func labels(text string) (map[string]string, error) {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	if len(list) == 1 && list[0] == "" {
		return nil, nil
	}
	return core.ParseLabels(list)
}

// No quotes needed, and room for notifications' names.
func schemaName(text string) error {
	const most = 40
	if text == "" || len(text) > most || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || text[0] <= '9' {
		return fmt.Errorf("%q is not the name of a schema: lower-case letters, digits and _, at most %d, with no digit first", text, most)
	}
	return nil
}

// 0 is none in the file and the default in Go, where it is the zero value.
func logBytes(text string) (int64, error) {
	const least, most = 64 << 10, 1 << 30
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n != 0 && (n < least || n > most):
		return 0, fmt.Errorf("%q is not a number of bytes: 0, or from %d to %d", text, least, most)
	case n == 0:
		return -1, nil
	}
	return n, nil
}

func yesOrNo(text string) (bool, error) {
	return text == "true", oneOf(text, "true", "false")
}

func listenAddress(text string) error {
	if text == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(text)
	if n, nerr := strconv.Atoi(port); err != nil || nerr != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not HOST:PORT (such as :9464, localhost:9464)", text)
	}
	return nil
}

// The collector reads no other files.
func textfileName(text string) error {
	if text == "" || strings.HasSuffix(text, ".prom") {
		return nil
	}
	return fmt.Errorf("%q does not end in .prom: node_exporter would not read it", text)
}

func receiverURL(text string) error {
	u, err := url.Parse(text)
	if text == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return fmt.Errorf("%q is not the URL of a receiver (such as http://localhost:4318)", secret.Text(text))
}

// Octal, as in chmod. Without both rights of the owner a job could not continue its files.
func fileMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 32)
	if err != nil || mode&0o600 != 0o600 || mode&^0o666 != 0 {
		return 0, fmt.Errorf("%q is not the mode of a file (such as 0600, 0640, 0644)", text)
	}
	return fs.FileMode(mode), nil
}

func oneOf(text string, allowed ...string) error {
	if slices.Contains(allowed, text) {
		return nil
	}
	return fmt.Errorf("%q is not allowed (allowed: %s)", text, strings.Join(allowed, ", "))
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration above zero (such as 30s, 5m)", text)
	}
	return d, nil
}

const knownURLs = "sqlite:PATH, postgres://USER:PASSWORD@HOST/NAME or mysql://USER:PASSWORD@HOST/NAME"

func checkURL(text string) error {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case strings.Contains(text, "${"):
		return errors.New("a database URL takes no ${...}: those are for job files, and the database is opened before one is read; " +
			"give the whole URL by the environment (SURFIN_DATABASES_NAME, or DATABASE_URL), or leave the password to a file that only you read (PGPASSFILE)")
	case !ok:
		return errors.New("not a database URL: " + knownURLs)
	case scheme == "sqlite" && rest == "":
		return fmt.Errorf("sqlite: needs a path, such as sqlite:surfin.db")
	case scheme == "sqlite":
		return nil
	case scheme == "postgres" || scheme == "postgresql" || scheme == "mysql":
		if _, err := url.Parse(text); err != nil {
			return fmt.Errorf("the URL cannot be read (are special characters of the password escaped as %%XX?)")
		}
		return nil
	}
	return fmt.Errorf("%s: databases of this kind are not known (known: %s)", scheme, knownURLs)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Unit returns the unit or form of a Reference row; "" is a mistake, which a test finds.
func Unit(row [4]string) string {
	switch key, fallback := row[0], row[2]; {
	case strings.HasSuffix(key, ".max_open"):
		return "connections"
	case key == "traces.chunks":
		return "spans"
	case key == "log.execution_bytes":
		return "bytes"
	case key == "api.rate":
		return "requests a second"
	case key == "files.mode":
		return "permissions, octal"
	case strings.HasSuffix(key, ".listen") && fallback != "true":
		return "HOST:PORT"
	case strings.HasPrefix(key, "databases."), key == "traces.endpoint":
		return "URL"
	case key == "api.paths":
		return "paths"
	case key == "api.base_path":
		return "path"
	case key == "log.events", key == "tasks.logs", key == "metrics.textfile", strings.HasSuffix(key, ".file"):
		return "path"
	case key == "tasks.secrets", key == "api.proxy.from", key == "api.proxy.operators", key == "api.proxy.viewers", strings.HasSuffix(key, ".command"):
		return "list"
	case fallback == "true", fallback == "false":
		return "true or false"
	default:
		if _, err := strconv.ParseFloat(fallback, 64); err == nil {
			return ""
		}
		if _, err := time.ParseDuration(fallback); err == nil {
			return "duration, such as 90s or 5m"
		}
		return "text"
	}
}
