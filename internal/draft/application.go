package draft

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/contrib"
)

// Module is the path of Surfin's own module.
const Module = "github.com/surfin-batch/surfin"

const direct = "go.uber.org/fx"

//go:embed app program.go.txt
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
	// With are families of contrib.
	With []string
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
		files = append(files, File{f.path, a.fill(string(text))})
	}
	return append(files, a.module()...), nil
}

// Program returns the files of a command that has the stock components, metrics, traces and the families, as the
// released one has all.
func (a *Application) Program() ([]File, error) {
	text, err := app.ReadFile("program.go.txt")
	if err != nil {
		return nil, err
	}
	return append([]File{{"main.go", a.fill(string(text))}}, a.module()...), nil
}

func (a *Application) fill(text string) string {
	var imports, modules string
	for _, family := range a.With {
		imports += "\t\"" + contrib.Module + "/" + family + "\"\n"
		modules += "\t\t" + family + ".Module(),\n"
	}
	return strings.NewReplacer("{{name}}", a.Name, "// {{imports}}\n", imports, "// {{modules}}\n", modules).Replace(text)
}

func (a *Application) module() []File {
	module := a.Module
	if module == "" {
		module = a.Name
	}
	c, more, replaced := a.Checkout, "", ""
	if c == nil {
		if len(a.With) > 0 {
			more = fmt.Sprintf("require %s %s\n", contrib.Module, a.Version)
		}
		return []File{{"go.mod", fmt.Sprintf("module %s\n\ngo %s\n\nrequire %s %s\n%s", module, a.Go, Module, a.Version, more)}}
	}
	if len(a.With) > 0 {
		more = "\t" + contrib.Module + " v0.0.0\n"
		replaced = fmt.Sprintf("\nreplace %s => %s\n", contrib.Module, quotedPath(c.Folder+"/contrib"))
	}
	var used, needed string
	for _, line := range c.required {
		if strings.HasPrefix(line, direct+" ") {
			used += "\t" + line + "\n"
			continue
		}
		needed += "\t" + line + " // indirect\n"
	}
	text := fmt.Sprintf(`module %s

go %s

require (
	%s v0.0.0
%s%s)

// Surfin is taken from a folder. Without this line it is the version that is required above.
replace %s => %s
%s
// What Surfin needs.
require (
%s)
`, module, c.version, Module, more, used, Module, quotedPath(c.Folder), replaced, needed)
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
	for _, of := range []string{folder, filepath.Join(folder, "contrib")} {
		if err := c.add(of); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add adds the requirements of a module of the checkout.
func (c *Checkout) add(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	for _, line := range requireLine.FindAllSubmatch(text, -1) {
		c.require(string(line[1]))
	}
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	c.sums += string(sums)
	return err
}

// require keeps the newer version of a module.
func (c *Checkout) require(line string) {
	module, version, _ := strings.Cut(line, " ")
	i := slices.IndexFunc(c.required, func(has string) bool { return strings.HasPrefix(has, module+" ") })
	switch {
	case i < 0:
		c.required = append(c.required, line)
	case compareVersions(c.required[i][len(module)+1:], version) < 0:
		c.required[i] = line
	}
}

func compareVersions(a, b string) int {
	numbers := func(version string) (list [3]int, rest string) {
		version, rest, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
		for i, text := range strings.SplitN(version, ".", len(list)) {
			list[i], _ = strconv.Atoi(text) //nolint:errcheck // a go.mod has valid versions
		}
		return list, rest
	}
	first, early := numbers(a)
	second, late := numbers(b)
	// v1.2.0 is after v1.2.0-rc.1, which has a rest.
	return cmp.Or(slices.Compare(first[:], second[:]), cmp.Compare(btoi(early == ""), btoi(late == "")), strings.Compare(early, late))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
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
