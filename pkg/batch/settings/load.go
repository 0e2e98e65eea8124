package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Source are Load's inputs.
type Source struct {
	// Dir is the working directory, absolute.
	Dir string
	// File is relative to Dir; empty means surfin.yaml, if it exists.
	File    string
	Environ []string
	Flags   []Flag
}

// Flag is one setting.
type Flag struct{ Name, Key, Value string }

// Load merges all layers; its error joins every *Error.
func Load(src Source) (Settings, error) {
	l := loader{src: src, values: map[string]string{}, origins: map[string]origin{}}
	l.defaults()
	if err := l.file(); err != nil {
		return Settings{}, err
	}
	l.environment()
	l.flags()
	s := l.decode()
	s.Secrets = secret.NewVault(src.Environ, "", l.secrets)
	s.learn(s.Secrets)
	return s, errors.Join(l.problems...)
}

type loader struct {
	src      Source
	values   map[string]string
	origins  map[string]origin
	settings Settings
	problems []error
	secrets  map[string]secret.Origin
}

func (l *loader) set(key, value string, from origin) {
	l.values[key], l.origins[key] = value, from
}

func (l *loader) defaults() {
	from := origin{where: "default", dir: l.src.Dir, isDefault: true}
	l.set("databases."+tx.Default+".url", "sqlite:surfin.db", from)
	for _, c := range catalog() {
		l.set(c.key, c.fallback, from)
	}
}

// The default database is in the file's folder.
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
	l.secrets, l.settings.Places = read.secrets, read.settings
	l.warnReadable(path, read.values)
	def := l.origins["databases."+tx.Default+".url"]
	def.dir = filepath.Dir(path)
	l.origins["databases."+tx.Default+".url"] = def
	for key, value := range read.values {
		l.set(key, value, read.places[key])
	}
	return nil
}

// SURFIN_DATABASES_DEFAULT wins over DATABASE_URL. Empty counts as not set.
func (l *loader) environment() {
	take := func(key, name, value string) {
		if key != "" && value != "" {
			l.set(key, value, origin{where: name, dir: l.src.Dir})
		}
	}
	for _, entry := range l.src.Environ {
		if name, value, _ := strings.Cut(entry, "="); name == "DATABASE_URL" {
			take("databases."+tx.Default+".url", name, value)
		}
	}
	for _, entry := range l.src.Environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "SURFIN_") && value != "" {
			take(l.variableKey(name), name, value)
		}
	}
	slices.Sort(l.settings.Warnings)
}

// "" if not a setting.
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
	// Secrets and tests' variables share the prefix.
	if !strings.HasPrefix(name, "SURFIN_SECRET_") && !strings.HasPrefix(name, "SURFIN_TEST_") {
		l.settings.Warnings = append(l.settings.Warnings, name+" is not a setting and was ignored (surfin help settings lists them)")
	}
	return ""
}

func (l *loader) flags() {
	for _, f := range l.src.Flags {
		l.set(f.Key, f.Value, origin{where: f.Name, dir: l.src.Dir})
	}
}

func (l *loader) decode() Settings {
	s := &l.settings
	s.Databases = map[string]Database{}
	all := catalog()
	for _, name := range l.names("databases") {
		if !databaseName.MatchString(name) {
			l.wrong("databases."+name+".url", fmt.Errorf("%q is not a valid database name (letters, digits, _ and -)", name))
			continue
		}
		if _, ok := l.values["databases."+name+".url"]; !ok {
			l.wrong("databases."+name+".max_open", fmt.Errorf("database %s has no url", name))
			continue
		}
		all = append(all, databaseSettings(name)...)
	}
	for _, c := range all {
		if value, ok := l.values[c.key]; ok {
			if err := c.set(s, value); err != nil {
				l.wrong(c.key, err)
			}
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

func (l *loader) path(key, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.origins[key].dir, path)
}

var databaseName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

func (l *loader) names(section string) []string {
	names := map[string]bool{}
	for key := range l.values {
		if name, ok := strings.CutPrefix(key, section+"."); ok {
			name, _, _ = strings.Cut(name, ".")
			names[name] = true
		}
	}
	return sortedKeys(names)
}

func (l *loader) crossChecks(s *Settings) {
	if _, ok := s.Databases[s.Repository.Database]; !ok {
		l.wrong("repository.database", fmt.Errorf("there is no database %q (there are: %s)", s.Repository.Database, strings.Join(s.Names(), ", ")))
	}
	if from := l.origins["engine"]; !from.isDefault {
		s.Engine.Origin = from.where
	}
	if p := s.API.Proxy; len(p.From) > 0 && (p.UserHeader == "" || len(p.Operators)+len(p.Viewers) == 0) {
		l.wrong("api.proxy.from", errors.New("no one could sign in: set api.proxy.user_header, and api.proxy.operators or api.proxy.viewers"))
	}
	history := s.Databases[s.Repository.Database]
	if _, sqlite := sqlitePath(history.URL); sqlite && history.Origin != "" && s.Engine.Name == EngineRiver {
		l.wrong("engine", fmt.Errorf("river needs PostgreSQL, and the database %s of the history is %s (%s): give it a URL postgres://..., or take the engine local",
			s.Repository.Database, history, history.Origin))
	}
	if s.Heartbeat > 0 && s.Lease > 0 && s.Heartbeat*2 > s.Lease {
		l.wrong("heartbeat", fmt.Errorf("a heartbeat of %s must be at most half of the lease of %s", s.Heartbeat, s.Lease))
	}
}

func (l *loader) wrong(key string, err error) {
	o := l.origins[key]
	l.problems = append(l.problems, &Error{Where: o.where, Err: fmt.Errorf("%s: %w", key, err), Excerpt: o.excerpt})
}

func tokenKey(name string) string {
	for section := range tokenSections() {
		if client, ok := strings.CutPrefix(name, variable(section)+"_"); ok && client != "" {
			return section + "." + strings.ToLower(client)
		}
	}
	return ""
}

func absolute(text, dir string) string {
	path, ok := sqlitePath(text)
	if !ok || path == "" || strings.HasPrefix(path, ":memory:") {
		return text
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return "sqlite:" + path
}

// Messages never contain a token.
func (l *loader) clients(s *Settings) {
	owner := map[string]string{}
	for _, section := range sortedKeys(tokenSections()) {
		for _, name := range l.names(section) {
			key := section + "." + name
			token := l.values[key]
			switch {
			case !clientName.MatchString(name):
				l.wrong(key, fmt.Errorf("%q is not a valid client name (letters, digits, _ and -)", name))
			case len(token) < minToken || !bearer.MatchString(token):
				l.wrong(key, fmt.Errorf("a token has at least %d characters: letters, digits and ._~+/-", minToken))
			case owner[token] != "":
				l.wrong(key, fmt.Errorf("it has the token of %s: each client needs its own", owner[token]))
			case slices.ContainsFunc(s.API.Clients, func(c Client) bool { return c.Name == name }):
				l.wrong(key, fmt.Errorf("client %s has a token in another role already", name))
			default:
				owner[token] = key
				s.API.Clients = append(s.API.Clients, Client{Name: name, Role: tokenSections()[section], Token: token})
			}
		}
	}
}
