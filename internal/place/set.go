package place

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Scheme are the places of one beginning of URLs.
type Scheme struct {
	Name string
	// Config is a struct with the field tags of a component. A field with secret:"true" takes ${secret.NAME} only.
	Config reflect.Type
	// New makes a place; cfg points to Config. It asks no server.
	New func(ctx context.Context, cfg any) (Place, error)
}

// Setting is an entry of places in surfin.yaml.
type Setting struct {
	// URL is a scheme, or the beginning of URLs: the longest that fits counts.
	URL string
	// Values may be ${secret.NAME}.
	Values map[string]string
	// Where are the positions of the values, and of the entry under "".
	Where map[string]string
}

// Secret finds a secret by its name.
type Secret func(ctx context.Context, name string) (string, error)

// Set are the places of a process. The nil *Set has none but the disk. It is safe for concurrent use.
type Set struct {
	secret   Secret
	schemes  map[string]Scheme
	settings map[string]Setting // by URL

	mu   sync.Mutex
	made map[string]Place
}

// NewSet checks the settings; its error joins all mistakes.
func NewSet(schemes []Scheme, settings []Setting, secret Secret) (*Set, error) {
	s := &Set{secret: secret, schemes: map[string]Scheme{}, settings: map[string]Setting{}, made: map[string]Place{}}
	for _, scheme := range schemes {
		s.schemes[scheme.Name] = scheme
	}
	var errs []error
	for _, setting := range settings {
		if s.lacks(setting.URL) {
			continue
		}
		if urlpath.Is(setting.URL) {
			url, err := urlpath.Folder(setting.URL)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: places: %w", setting.Where[""], err))
				continue
			}
			setting.URL = url
		}
		s.settings[setting.URL] = setting
		_, err := s.config(setting, setting.Values)
		errs = append(errs, err, s.literals(setting))
	}
	return s, errors.Join(errs...)
}

// lacks reports that another program has such places: the same surfin.yaml may serve both, and this one refuses the jobs.
func (s *Set) lacks(url string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(url), "://")
	return !s.has(scheme) && slices.Contains(urlpath.Schemes(), scheme)
}

func (s *Set) config(setting Setting, values map[string]string) (any, error) {
	name := setting.URL
	if urlpath.Is(name) {
		name = urlpath.Scheme(name)
	}
	scheme, ok := s.schemes[name]
	if !ok {
		return nil, fmt.Errorf("%s: places.%s: %w", setting.Where[""], setting.URL, s.unknown(name))
	}
	keys := yamlfile.FieldsOf(scheme.Config)
	cfg := reflect.New(scheme.Config)
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		field, ok := keys.Find(key)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: places.%s: unknown key %s (allowed: %s)", setting.Where[key], setting.URL, key, strings.Join(keys.Names(), ", ")))
			continue
		}
		if err := yamlfile.Set(cfg.Elem().FieldByIndex(field.Index), yamlfile.Value{Text: values[key]}); err != nil {
			errs = append(errs, fmt.Errorf("%s: places.%s.%s: %w", setting.Where[key], setting.URL, key, err))
		}
	}
	if v, is := cfg.Interface().(interface{ Validate() error }); is && len(errs) == 0 {
		if err := v.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: places.%s: %w", setting.Where[""], setting.URL, err))
		}
	}
	return cfg.Interface(), errors.Join(errs...)
}

// literals refuses a secret that is written in the file.
func (s *Set) literals(setting Setting) error {
	scheme, _, _ := strings.Cut(setting.URL, "://")
	of, ok := s.schemes[strings.ToLower(scheme)]
	if !ok {
		return nil
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(setting.Values)) {
		field, ok := yamlfile.FieldsOf(of.Config).Find(key)
		if _, is := reference(setting.Values[key]); ok && !is && of.Config.FieldByIndex(field.Index).Tag.Get("secret") != "" {
			errs = append(errs, fmt.Errorf("%s: places.%s.%s takes the name of a secret, not its value: ${secret.NAME}, which is the variable SURFIN_SECRET_NAME or an entry of secrets", setting.Where[key], setting.URL, key))
		}
	}
	return errors.Join(errs...)
}

func reference(text string) (name string, is bool) {
	name, is = strings.CutPrefix(text, "${secret.")
	if !is {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

func (s *Set) resolved(ctx context.Context, setting Setting) (map[string]string, error) {
	values := map[string]string{}
	for key, text := range setting.Values {
		if name, is := reference(text); is {
			found, err := s.secret(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("%s: places.%s.%s: %w", setting.Where[key], setting.URL, key, err)
			}
			text = found
		}
		values[key] = text
	}
	return values, nil
}

func (s *Set) has(scheme string) bool {
	if s == nil {
		return false
	}
	_, ok := s.schemes[scheme]
	return ok
}

func (s *Set) unknown(scheme string) error {
	if s == nil {
		return fmt.Errorf("files of %s:// cannot be read here: copy this one to a disk first", scheme)
	}
	return &LackingError{Scheme: scheme, Known: slices.Sorted(maps.Keys(s.schemes))}
}

// LackingError reports a place that the program does not have.
type LackingError struct {
	Scheme string
	Known  []string
}

// Error names the place and the others.
func (e *LackingError) Error() string {
	text := "this program has no place " + e.Scheme + "://"
	if len(e.Known) > 0 {
		text += " (it has: " + strings.Join(e.Known, ", ") + ")" + nearest.Hint(e.Scheme, e.Known)
	}
	return text
}

func (s *Set) of(ctx context.Context, url string) (Place, error) {
	scheme := urlpath.Scheme(url)
	if !s.has(scheme) {
		return nil, s.unknown(scheme)
	}
	key := scheme
	for prefix := range s.settings {
		if urlpath.Is(prefix) && urlpath.Below(url, prefix) && (key == scheme || len(prefix) > len(key)) {
			key = prefix
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, ok := s.made[key]; ok {
		return made, nil
	}
	setting, ok := s.settings[key]
	if !ok {
		setting.URL = scheme
	}
	values, err := s.resolved(ctx, setting)
	if err != nil {
		return nil, err
	}
	cfg, err := s.config(setting, values)
	if err != nil {
		return nil, err
	}
	made, err := s.schemes[scheme].New(ctx, cfg)
	if err == nil {
		s.made[key] = made
	}
	return made, err
}

type setKey struct{}

// With puts the places of the process into a context.
func With(ctx context.Context, s *Set) context.Context { return context.WithValue(ctx, setKey{}, s) }

// Of is the place of a path, as far as the execution of ctx may use it.
func Of(ctx context.Context, path string) (Place, error) {
	if !urlpath.Is(path) {
		return Disk(ctx), nil
	}
	if err := confine.From(ctx).URL(path); err != nil {
		return nil, err
	}
	s, _ := ctx.Value(setKey{}).(*Set) //nolint:errcheck // absent has no place
	return s.of(ctx, path)
}

// Stat describes a file in its place.
func Stat(ctx context.Context, path string) (Info, error) {
	in, err := Of(ctx, path)
	if err != nil {
		return Info{}, err
	}
	return in.Stat(ctx, path)
}

// Open opens a file in its place.
func Open(ctx context.Context, path string) (File, error) {
	in, err := Of(ctx, path)
	if err != nil {
		return nil, err
	}
	return in.Open(ctx, path)
}

// Find returns the files of a pattern in its place.
func Find(ctx context.Context, pattern string) ([]Info, error) {
	in, err := Of(ctx, pattern)
	if err != nil {
		return nil, err
	}
	return in.Find(ctx, pattern)
}
