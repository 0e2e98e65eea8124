package tree

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/itemtype"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// File is a checked job file.
type File struct {
	// Places are the schemes of the URLs that the program reads and writes.
	Places        []string
	Doc           *yamlfile.Document
	From          source.Source
	Folder        string
	Name          string
	Model         *language.Job
	Specs         []core.ParameterSpec
	Flow, Finally *List
	Steps         []*Step
	Outs          map[string]*row.Schema // named results of steps, where they have types
	Types         *itemtype.Types
	Listeners     []*ComponentUse
	Expect        *Condition
	Schedule      *Schedule           // nil means none
	On            *core.Placement     // of the registered job; nil means any worker
	Exclusive     *expression.Program // the key; nil means that the file has none
	Included      []source.Included   // the files that it includes, at any depth
	Clock         template.Clock
	Now           func() time.Time
	clockDefaults []clockDefault
	BadDefaults   bool // the file's defaults have a mistake
}

type clockDefault struct {
	parameter string
	template  *template.Template
}

// StepNames are the names of all steps and child jobs, in order.
func (f *File) StepNames() []string {
	return language.NamesOf(f.Steps, func(s *Step) string { return s.Name })
}

// StepNamed returns the step, or nil; not those of finally.
func (f *File) StepNamed(name string) *Step {
	for _, s := range f.Steps {
		if s.Name == name && !s.Element.List.Finally {
			return s
		}
	}
	return nil
}

// Components are all uses in the file, without child jobs.
func (f *File) Components() []*ComponentUse {
	uses := slices.Clone(f.Listeners)
	for _, s := range f.Steps {
		uses = append(uses, s.Components()...)
	}
	if f.Flow != nil {
		f.Flow.Walk(func(e *Element) {
			if e.Decider != nil {
				uses = append(uses, e.Decider)
			}
		})
	}
	return uses
}

// IsSecret reports whether a parameter is secret.
func (f *File) IsSecret(name string) bool {
	return slices.ContainsFunc(f.Specs, func(s core.ParameterSpec) bool { return s.Secret && s.Name == name })
}

// Place is the position of a node in messages.
func (f *File) Place(n *yamlfile.Node) string {
	if f.Doc.Describe != nil {
		return f.Doc.Place(n)
	}
	return n.Position(f.Doc.Path)
}

// Definition returns the texts of the file, its includes and child jobs, and one hash (rule F4).
func (f *File) Definition() core.Definition {
	files := map[string]core.DefinitionFile{}
	f.addFiles("", files)
	return ports.NewDefinition(f.Doc.Text, f.From.Location(), slices.Collect(maps.Values(files)))
}

func (f *File) addFiles(name string, files map[string]core.DefinitionFile) {
	for _, i := range f.Included {
		at := source.NameFrom(name, i.Name)
		files[at] = core.DefinitionFile{Name: at, Text: i.Doc.Text, Path: i.From.Location()}
	}
	for _, s := range f.Steps {
		if s.Child == nil || s.Child.File == nil {
			continue
		}
		child := s.Child.File
		at := source.NameFrom(name, s.Child.Model.File)
		if _, known := files[at]; !known {
			files[at] = core.DefinitionFile{Name: at, Text: child.Doc.Text, Path: child.From.Location()}
			child.addFiles(at, files)
		}
	}
}

// KeepComputed keeps a default that depends on the time.
func (f *File) KeepComputed(spec core.ParameterSpec, t *template.Template) {
	for _, h := range t.Holes {
		if h.Prog.UsesClock() {
			f.clockDefaults = append(f.clockDefaults, clockDefault{spec.Name, t})
			return
		}
	}
}

// ParametersNow are the specs with the defaults of now.
func (f *File) ParametersNow() []core.ParameterSpec { return f.ParametersAt(f.Now()) }

// ParametersAt are the specs with the defaults at a time; one that does not fit keeps its value
// from the load.
func (f *File) ParametersAt(now time.Time) []core.ParameterSpec {
	specs := slices.Clone(f.Specs)
	for _, d := range f.clockDefaults {
		text, _, err := d.template.Evaluate(f.Clock.Values(now))
		if err != nil {
			continue
		}
		i := slices.IndexFunc(specs, func(s core.ParameterSpec) bool { return s.Name == d.parameter })
		if x, err := specs[i].Parse(text); err == nil {
			specs[i].Default, specs[i].FormerDefault = x, specs[i].Former(text, x)
		}
	}
	return specs
}

// Paths begin at the folder of the file (rule L1a): components and messages get them relative to
// the working directory, expressions absolute.

// Resolve returns a path of the file relative to the working directory.
func (f *File) Resolve(text string) string { return source.Resolve(f.From.Dir(), text) }

// Absolute returns a path of the file as an absolute one.
func (f *File) Absolute(text string) string {
	text = source.Resolve(f.Folder, text)
	if abs, err := urlpath.Abs(text); err == nil && text != "" {
		return abs
	}
	return text
}

// Named returns an absolute path in the folder of the file as resolve would.
func (f *File) Named(path string) string {
	if f.Folder == "" || !filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(f.Folder, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(f.From.Dir(), rel)
}

// DeclarePath makes a string parameter that is a whole path one of type path, unless it has a
// pattern or an enum.
func (f *File) DeclarePath(expression string) {
	name, is := strings.CutPrefix(strings.TrimSpace(expression), "params.")
	i := slices.IndexFunc(f.Specs, func(spec core.ParameterSpec) bool { return is && spec.Name == name })
	if i < 0 || f.Specs[i].Type != core.TypeString || f.Specs[i].Pattern != "" || len(f.Specs[i].Enum) > 0 {
		return
	}
	f.Specs[i].Type, f.Specs[i].Folder = core.TypePath, f.Folder
}
