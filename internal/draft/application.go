package draft

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Module is the path of Surfin's own module.
const Module = "github.com/surfin-batch/surfin"

const direct = "go.uber.org/fx"

//go:embed app
var app embed.FS

// Application is a small Go program with its own components.
type Application struct {
	Name string
	// Module is the path of its Go module; empty means Name.
	Module  string
	Version string
	// Checkout replaces the required module by a folder; nil means the released one.
	Checkout *Checkout
	Go       string
}

var applicationName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// CheckName refuses names that an application cannot have.
func (a *Application) CheckName() error {
	switch {
	case !applicationName.MatchString(a.Name):
		return fmt.Errorf("%q cannot name an application: write a lower-case letter, then at most 39 letters, digits, - and _", a.Name)
	case a.Name == "test" || a.Name == "main": // packages of these names are not run
		return fmt.Errorf("%q cannot name an application: the go command reserves it", a.Name)
	}
	return nil
}

// Files returns the files of the application. With a Checkout it builds unchanged; otherwise `go
// mod tidy` adds the modules.
func (a *Application) Files() ([]File, error) {
	if err := a.CheckName(); err != nil {
		return nil, err
	}
	var files []File
	for _, f := range []struct{ path, from string }{
		{"main.go", "main.go.txt"}, {"readings.go", "readings.go.txt"}, {a.Name + ".yaml", "job.yaml.txt"}, {"data/readings.txt", "readings.txt"}, {"main_test.go", "main_test.go.txt"},
		{"README.md", "README.md.txt"}, {"Makefile", "Makefile.txt"}, {".gitignore", "gitignore.txt"},
	} {
		text, err := app.ReadFile("app/" + f.from)
		if err != nil {
			return nil, err
		}
		files = append(files, File{f.path, strings.ReplaceAll(string(text), "{{name}}", a.Name)})
	}
	return append(files, a.module()...), nil
}

func (a *Application) module() []File {
	module := a.Module
	if module == "" {
		module = a.Name
	}
	text := fmt.Sprintf("module %s\n\ngo %s\n\nrequire %s %s\n", module, a.Go, Module, a.Version)
	c := a.Checkout
	if c == nil {
		return []File{{"go.mod", text}}
	}
	var used, needed string
	for _, line := range c.required {
		if strings.HasPrefix(line, direct+" ") {
			used += "\t" + line + "\n"
			continue
		}
		needed += "\t" + line + " // indirect\n"
	}
	text = fmt.Sprintf(`module %s

go %s

require (
	%s v0.0.0
%s)

// Surfin is taken from a folder. Without this line it is the version that is required above.
replace %s => %s

// What Surfin needs.
require (
%s)
`, module, c.version, Module, used, Module, quotedPath(c.Folder), needed)
	return []File{{"go.mod", text}, {"go.sum", c.sums}}
}

func quotedPath(path string) string {
	if strings.ContainsAny(path, " \t\"'`(),") {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// Checkout is a folder with Surfin's own module.
type Checkout struct {
	// Folder is its path in go.mod: absolute, or beginning with ./ or ../.
	Folder        string
	version, sums string
	required      []string
}

// ErrNoCheckout is the error of a folder without Surfin's module.
var ErrNoCheckout = errors.New("it has no go.mod of " + Module)

var (
	moduleLine  = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?\s*$`)
	goLine      = regexp.MustCompile(`(?m)^go\s+(\S+)\s*$`)
	requireLine = regexp.MustCompile(`(?m)^(?:require)?\s+([^\s()]+\.[^\s()]*/?[^\s()]*\s+v[^\s()]+)`)
)

// ReadCheckout reads the data of a checkout that an application needs.
func ReadCheckout(folder string) (*Checkout, error) {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if file, failed := os.Stat(folder); errors.Is(err, fs.ErrNotExist) || failed == nil && !file.IsDir() { // such as the program surfin
		return nil, fmt.Errorf("%s: %w", folder, ErrNoCheckout)
	}
	if err != nil {
		return nil, err
	}
	module, version := moduleLine.FindSubmatch(text), goLine.FindSubmatch(text)
	if module == nil || string(module[1]) != Module || version == nil {
		return nil, fmt.Errorf("%s: %w", folder, ErrNoCheckout)
	}
	c := &Checkout{Folder: folder, version: string(version[1])}
	for _, line := range requireLine.FindAllSubmatch(text, -1) {
		c.required = append(c.required, string(line[1]))
	}
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	c.sums = string(sums)
	return c, err
}

// FindCheckout looks for a checkout around a folder: one that contains it, or a folder `surfin`
// next to it or next to a folder that contains it. It returns nil if there is none.
func FindCheckout(folder string) (*Checkout, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	for at := folder; ; at = filepath.Dir(at) {
		for _, place := range []string{at, filepath.Join(at, "surfin")} {
			c, err := ReadCheckout(place)
			if !errors.Is(err, ErrNoCheckout) {
				return c, err
			}
		}
		if at == filepath.Dir(at) {
			return nil, nil //nolint:nilnil // none is not a failure
		}
	}
}
