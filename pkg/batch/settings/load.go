package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	koanfmaps "github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Source is where settings are read from.
type Source struct {
	// Dir is the working directory, absolute.
	Dir string
	// File is the settings file, relative to Dir; empty: surfin.yaml in Dir if it
	// is there.
	File string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// Flags were given on the command line.
	Flags []Flag
}

// Flag is a setting given on the command line.
type Flag struct{ Name, Key, Value string }

// Error is one thing wrong with the settings.
type Error struct {
	// Where is the flag, the variable or FILE:LINE:COLUMN.
	Where string
	Err   error
	// Excerpt is the line of the file with a caret under the place; empty for
	// flags and variables.
	Excerpt string
}

// Error says where, and what.
func (e *Error) Error() string {
	text := e.Where + ": " + e.Err.Error()
	if e.Excerpt != "" {
		text += "\n" + e.Excerpt
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Load merges all layers. Its error joins an *Error for everything that is wrong.
func Load(src Source) (Settings, error) {
	l := loader{src: src, k: koanf.New("."), origins: map[string]origin{}}
	for _, layer := range []func() error{l.defaults, l.file, l.environment, l.flags} {
		if err := layer(); err != nil {
			return Settings{}, err
		}
	}
	s := l.decode()
	s.Secrets = secret.NewVault(src.Environ, "", l.secrets)
	s.learn(s.Secrets)
	return s, errors.Join(l.problems...)
}

// origin says where the value of a key is from.
type origin struct {
	where   string
	excerpt string
	// dir is what a relative path in the value is relative to.
	dir string
	// isDefault: nobody said it.
	isDefault bool
}

type loader struct {
	src      Source
	k        *koanf.Koanf
	origins  map[string]origin
	settings Settings
	problems []error
	secrets  map[string]secret.Origin
}

// layer is a koanf.Provider of keys that were read already.
type layer map[string]any

func (l layer) ReadBytes() ([]byte, error)    { return nil, errors.ErrUnsupported }
func (l layer) Read() (map[string]any, error) { return koanfmaps.Unflatten(l, "."), nil }

// merge puts a layer over those before it.
func (l *loader) merge(values map[string]any, from func(key string) origin) error {
	for key := range values {
		l.origins[key] = from(key)
	}
	if err := l.k.Load(layer(values), nil); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

func (l *loader) defaults() error {
	values := map[string]any{"databases." + tx.Default + ".url": "sqlite:surfin.db"}
	for _, c := range catalog() {
		values[c.key] = c.fallback
	}
	return l.merge(values, func(string) origin { return origin{where: "default", dir: l.src.Dir, isDefault: true} })
}

// file reads surfin.yaml. The default database lies beside it.
func (l *loader) file() error {
	path := l.src.File
	if path == "" {
		path = FileName
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.src.Dir, path)
	}
	data, err := smallfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) && l.src.File == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	l.settings.File = path
	read := parse(path, data)
	l.problems = append(l.problems, read.problems...)
	l.secrets = read.secrets
	l.warnReadable(path, read.values)
	def := l.origins["databases."+tx.Default+".url"]
	def.dir = filepath.Dir(path)
	l.origins["databases."+tx.Default+".url"] = def
	return l.merge(read.values, func(key string) origin { return read.places[key] })
}

// environment reads SURFIN_* and DATABASE_URL. The more specific
// SURFIN_DATABASES_DEFAULT wins over DATABASE_URL.
func (l *loader) environment() error {
	names := map[string]string{}
	take := func(prefix string, key func(name string) string) error {
		p := env.Provider(".", env.Opt{Prefix: prefix, EnvironFunc: func() []string { return l.src.Environ },
			TransformFunc: func(name, value string) (string, any) {
				if value == "" {
					return "", nil
				}
				k := key(name)
				names[k] = name
				return k, value
			}})
		nested, err := p.Read()
		if err != nil {
			return fmt.Errorf("settings: environment: %w", err)
		}
		flat, _ := koanfmaps.Flatten(nested, nil, ".")
		return l.merge(flat, func(key string) origin { return origin{where: names[key], dir: l.src.Dir} })
	}
	err := take("DATABASE_URL", func(name string) string {
		if name != "DATABASE_URL" {
			return ""
		}
		return "databases." + tx.Default + ".url"
	})
	if err == nil {
		err = take("SURFIN_", l.variableKey)
	}
	slices.Sort(l.settings.Warnings)
	return err
}

// variableKey returns the key of a SURFIN_ variable; "" for those that are none.
func (l *loader) variableKey(name string) string {
	for _, c := range catalog() {
		if variable(c.key) == name {
			return c.key
		}
	}
	if db, ok := strings.CutPrefix(name, "SURFIN_DATABASES_"); ok {
		db = strings.ToLower(db)
		if pool, ok := strings.CutSuffix(db, "_max_open"); ok {
			return "databases." + pool + ".max_open"
		}
		return "databases." + db + ".url"
	}
	if key := tokenKey(name); key != "" {
		return key
	}
	// Secrets and the tests' own variables share the prefix.
	if !strings.HasPrefix(name, "SURFIN_SECRET_") && !strings.HasPrefix(name, "SURFIN_TEST_") {
		l.settings.Warnings = append(l.settings.Warnings, name+" is no setting and was ignored (surfin help settings lists them)")
	}
	return ""
}

func (l *loader) flags() error {
	values, names := map[string]any{}, map[string]string{}
	for _, f := range l.src.Flags {
		values[f.Key], names[f.Key] = f.Value, f.Name
	}
	return l.merge(values, func(key string) origin { return origin{where: names[key], dir: l.src.Dir} })
}

// decode turns the merged texts into Settings and collects what is wrong.
func (l *loader) decode() Settings {
	s := &l.settings
	s.Databases = map[string]Database{}
	all := catalog()
	for _, name := range slices.Sorted(maps.Keys(l.databases())) {
		if !databaseName.MatchString(name) {
			l.wrong("databases."+name+".url", fmt.Errorf("%q is no name for a database (letters, digits, _ and -)", name))
			continue
		}
		if !l.k.Exists("databases." + name + ".url") {
			l.wrong("databases."+name+".max_open", fmt.Errorf("database %s has no url", name))
			continue
		}
		all = append(all, databaseSettings(name)...)
	}
	for _, c := range all {
		if !l.k.Exists(c.key) {
			continue
		}
		if err := c.set(s, fmt.Sprint(l.k.Get(c.key))); err != nil {
			l.wrong(c.key, err)
		}
	}
	for name, d := range s.Databases {
		from := l.origins["databases."+name+".url"]
		d.URL = absolute(d.URL, from.dir)
		if !from.isDefault {
			d.Origin = from.where
		}
		s.Databases[name] = d
	}
	s.Log.Events = l.path("log.events", s.Log.Events)
	s.Tasks.Logs = l.path("tasks.logs", s.Tasks.Logs)
	s.Metrics.Textfile = l.path("metrics.textfile", s.Metrics.Textfile)
	l.clients(s)
	l.crossChecks(s)
	return *s
}

// path is relative to where it was said.
func (l *loader) path(key, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.origins[key].dir, path)
}

var databaseName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

func (l *loader) databases() map[string]bool {
	names := map[string]bool{}
	for _, name := range l.k.MapKeys("databases") {
		names[name] = true
	}
	return names
}

func (l *loader) crossChecks(s *Settings) {
	if _, ok := s.Databases[s.Repository.Database]; !ok {
		l.wrong("repository.database", fmt.Errorf("there is no database %q (there are: %s)", s.Repository.Database, strings.Join(s.Names(), ", ")))
	}
	if from := l.origins["engine"]; !from.isDefault {
		s.Engine.Origin = from.where
	}
	history := s.Databases[s.Repository.Database]
	if _, sqlite := sqlitePath(history.URL); sqlite && history.Origin != "" && s.Engine.Name == EngineRiver {
		l.wrong("engine", fmt.Errorf("river needs PostgreSQL, and the database %s of the history is %s (%s): give it a URL postgres://..., or take the engine local",
			s.Repository.Database, history, history.Origin))
	}
	if s.Heartbeat > 0 && s.Lease > 0 && s.Heartbeat*2 > s.Lease {
		l.wrong("heartbeat", fmt.Errorf("a heartbeat every %s is too rare for a lease of %s: at most half of it", s.Heartbeat, s.Lease))
	}
}

func (l *loader) wrong(key string, err error) {
	o := l.origins[key]
	l.problems = append(l.problems, &Error{Where: o.where, Err: fmt.Errorf("%s: %w", key, err), Excerpt: o.excerpt})
}
