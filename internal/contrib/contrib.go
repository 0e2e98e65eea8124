// Package contrib knows, for programs without them, the components of the module contrib: their names, and how a program
// gets them.
//
// It imports core/registry and urlpath.
package contrib

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Module is the path of the module.
const Module = "github.com/surfin-batch/surfin/contrib"

// Component is a component of contrib.
type Component struct {
	Kind          registry.Kind
	Name, Summary string
	// Family is its package in contrib, which `surfin build --with` names.
	Family string
}

// Components are sorted as a registry sorts them.
func Components() []Component {
	return []Component{
		{registry.KindReader, "parquet", "Reads the rows of a parquet file.", "parquet"},
		{registry.KindWriter, "parquet", "Writes a parquet file.", "parquet"},
		{registry.KindPartitioner, "parquet", "Makes partitions of the row groups of a parquet file.", "parquet"},
		{urlpath.Kind, "s3", "Objects of Amazon S3, and of stores that speak its protocol.", "s3"},
	}
}

// Families are the packages, sorted.
func Families() []string {
	var list []string
	for _, c := range Components() {
		list = append(list, c.Family)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Missing are the components that a program with these lacks.
func Missing(has *registry.Registry) []Component {
	return slices.DeleteFunc(Components(), func(c Component) bool {
		_, known := has.Component(c.Kind, c.Name)
		return known
	})
}

// Find returns the component of that kind and name.
func Find(kind registry.Kind, name string) (Component, bool) {
	for _, c := range Components() {
		if c.Kind == kind && c.Name == name {
			return c, true
		}
	}
	return Component{}, false
}

// Page is the file of its page in docs/reference.
func (c Component) Page() string { return string(c.Kind) + "-" + c.Name + ".md" }

// Lacks is the error of a program without the component.
func (c Component) Lacks() string {
	return fmt.Sprintf("this program is built without the %s %s", c.Kind, c.Name)
}

// Cure names the ways to a program that has the family.
func Cure(family string) string {
	return fmt.Sprintf("the released surfin has it; or build one: surfin build --with %[1]s; or import %[2]s/%[1]s and pass %[1]s.Module() to the program", family, Module)
}

// Without returns the components of the registry that are not of contrib.
func Without(has *registry.Registry) (*registry.Registry, error) {
	list := slices.DeleteFunc(has.Components(), func(c registry.Component) bool {
		_, is := Find(c.Kind, c.Name)
		return is
	})
	var items []registry.NamedItem
	for _, name := range has.ItemNames() {
		t, _ := has.Item(name)
		items = append(items, registry.NamedItem{Name: name, Type: t})
	}
	return registry.New(list, items, has.Matchers())
}
