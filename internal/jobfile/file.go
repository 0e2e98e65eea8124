package jobfile

import (
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// fileDef is a checked job file.
type fileDef struct {
	doc  *yamlfile.Document
	from sourceText
	// folder is the absolute folder of the file; empty means that the file is not on the disk.
	folder string
	name   string
	model  *jobModel
	specs  []core.ParameterSpec
	// flow and finally are the elements as a tree, steps all steps and child jobs in it, in the order of the
	// file.
	flow, finally *listDef
	steps         []*stepDef
	outs          map[string]*row.Schema // named results of steps, where they have types
	types         *itemTypes
	listeners     []*componentUse
	expect        *condition
	schedule      *Schedule           // nil means none
	on            *core.Placement     // of the registered job; nil means any worker
	exclusive     *expression.Program // the key; nil means that the file has none
	included      []included          // the files that it includes, at any depth
	clock         clock
	now           func() time.Time
	clockDefaults []clockDefault
	badDefaults   bool // the file's defaults have a mistake
}

// definition returns the texts of the file, its includes and its child jobs at any depth, and one hash of
// them (rule F4).
func (f *fileDef) definition() core.Definition {
	files := map[string]core.DefinitionFile{}
	f.addFiles("", files)
	return core.NewDefinition(f.doc.Text, f.from.location(), slices.Collect(maps.Values(files)))
}

// addFiles adds the files that this one names. name is its own name.
func (f *fileDef) addFiles(name string, files map[string]core.DefinitionFile) {
	for _, i := range f.included {
		at := nameFrom(name, i.name)
		files[at] = core.DefinitionFile{Name: at, Text: i.doc.Text, Path: i.from.location()}
	}
	for _, s := range f.steps {
		if s.child == nil || s.child.file == nil {
			continue
		}
		child := s.child.file
		at := nameFrom(name, s.child.model.File)
		if _, known := files[at]; !known {
			files[at] = core.DefinitionFile{Name: at, Text: child.doc.Text, Path: child.from.location()}
			child.addFiles(at, files)
		}
	}
}

// location is the position of a node in messages.
func (f *fileDef) location(n *yamlfile.Node) string {
	if f.doc.Describe != nil {
		return f.doc.Place(n)
	}
	return n.Position(f.doc.Path)
}

func (f *fileDef) isSecret(name string) bool {
	return slices.ContainsFunc(f.specs, func(s core.ParameterSpec) bool { return s.Secret && s.Name == name })
}

// stepNamed returns the step of that name, without those of finally, or nil.
func (f *fileDef) stepNamed(name string) *stepDef {
	for _, s := range f.steps {
		if s.name == name && !s.element.list.finally {
			return s
		}
	}
	return nil
}

// stepNames are the names of all steps and child jobs, also nested ones and those of finally, in the order of
// the file.
func (f *fileDef) stepNames() []string {
	names := make([]string, len(f.steps))
	for i, s := range f.steps {
		names[i] = s.name
	}
	return names
}
