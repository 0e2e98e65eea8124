// Package recordtypes follows the records of a file with several record types (rule C15p), for the
// readers fixed and csv.
//
// It imports core with its folders only.
package recordtypes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Role determines the handling of a type's records.
type Role string

// The roles of record types.
const (
	Detail  Role = "detail"
	Header  Role = "header"
	Trailer Role = "trailer"
	Ignored Role = "ignore"
)

// Any is the name of the type of all records without another type.
const Any = "*"

// Type is a record type.
type Type struct {
	Name   string
	Role   Role
	Fields []int
	// Of is the header above; nil means the file.
	Of *Type
	// HasCount: a trailer counts the types CountOf, or the details, unreadable ones included.
	HasCount bool
	CountOf  []*Type
	Sums     []Sum
	Label    string

	number int
}

// Sum is the total of a column in a trailer.
type Sum struct {
	Name  string
	Field int // of the schema
}

// Record is a record in its reader.
type Record interface {
	Column(t *Type, column int) (row.Value, error)
	Count(t *Type) (int64, error)
	Sum(t *Type, sum int) (row.Value, error)
	Raw(t *Type) []byte
}

// Plan is the record types of a file.
type Plan struct {
	Types     []*Type
	Schema    *row.Schema
	TypeField int

	headers, trailers []*Type
	columns           [][]int // of each type and field of the schema: the column, or -1
}

// TypeFieldName is the default field with a detail's type.
const TypeFieldName = "record"

// New completes a plan and reports mistakes by type. Details that are read must have all fields.
func New(schema *row.Schema, types []*Type, reading bool) (*Plan, map[string]error) {
	p := &Plan{Types: types, Schema: schema, TypeField: -1}
	errs := map[string]error{}
	for i, t := range types {
		t.number = i
		columns := make([]int, schema.Len())
		for f := range columns {
			columns[f] = slices.Index(t.Fields, f)
		}
		p.columns = append(p.columns, columns)
		switch t.Role {
		case Header:
			p.headers = append(p.headers, t)
		case Trailer:
			p.trailers = append(p.trailers, t)
		default:
		}
	}
	if i := schema.Index(TypeFieldName); i >= 0 && schema.Field(i).Kind == row.String && !p.hasColumn(i) {
		p.TypeField = i
	}
	for _, t := range types {
		if err := p.check(t, reading); err != nil {
			errs[t.Name] = err
		}
	}
	return p, errs
}

func (p *Plan) hasColumn(field int) bool {
	return slices.ContainsFunc(p.columns, func(columns []int) bool { return columns[field] >= 0 })
}

func (p *Plan) check(t *Type, reading bool) error {
	for up, steps := t.Of, 0; up != nil; up, steps = up.Of, steps+1 {
		if up == t || steps > len(p.Types) {
			return fmt.Errorf("of: %s belongs to itself", t.Name)
		}
	}
	switch t.Role {
	case Detail:
		if reading {
			return p.checkDetail(t)
		}
	case Header:
		for _, other := range p.headers[:slices.Index(p.headers, t)] {
			for _, f := range t.Fields {
				if slices.Contains(other.Fields, f) {
					return fmt.Errorf("columns: the header %s has the field %s, too; a detail cannot take it from both", other.Name, p.Schema.Field(f).Name)
				}
			}
		}
	case Trailer:
		if t.Of != nil && slices.ContainsFunc(p.trailers, func(o *Type) bool { return o != t && o.Of == t.Of }) || t.Of == nil && slices.ContainsFunc(p.trailers, func(o *Type) bool { return o != t && o.Of == nil }) {
			return errors.New("of: there are two trailers of the same records; let one of them name the header that it closes")
		}
		for _, sum := range t.Sums {
			if !slices.ContainsFunc(p.Types, func(d *Type) bool { return d.Role == Detail && slices.Contains(d.Fields, sum.Field) }) {
				return fmt.Errorf("sums.%s: no detail has such a column", sum.Name)
			}
		}
	default:
	}
	return nil
}

func (p *Plan) checkDetail(t *Type) error {
	for i := range p.Schema.Len() {
		f := p.Schema.Field(i)
		fromHeader := slices.ContainsFunc(p.headers, func(h *Type) bool { return slices.Contains(h.Fields, i) })
		if p.columns[t.number][i] < 0 && !fromHeader && i != p.TypeField && !f.Nullable && !f.Optional && f.Default.IsNull() {
			return fmt.Errorf("columns: the field %s of the item has no column here or in a header: give it one, or make its type %s null", f.Name, f.Kind)
		}
	}
	return nil
}

// HasTrailers reports whether something must be compared at the end.
func (p *Plan) HasTrailers() bool { return len(p.trailers) > 0 }

// Find returns the type of a name, or the type of all other names, or nil.
func (p *Plan) Find(name string) *Type {
	var rest *Type
	for _, t := range p.Types {
		if t.Name == name {
			return t
		}
		if t.Name == Any {
			rest = t
		}
	}
	return rest
}

// Names lists the types, for messages.
func (p *Plan) Names() string {
	names := make([]string, len(p.Types))
	for i, t := range p.Types {
		names[i] = t.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (t *Type) label() string {
	if t.Label != "" {
		return t.Label
	}
	return "the " + string(t.Role) + " " + t.Name
}

func (t *Type) under(h *Type) bool {
	for up := t.Of; up != nil; up = up.Of {
		if up == h {
			return true
		}
	}
	return false
}

// Number is the index of the type in its plan.
func (t *Type) Number() int { return t.number }

// Links binds the names by which types refer to one another.
type Links struct{ types []*Type }

// NewLinks returns the links between some types.
func NewLinks(types []*Type) Links { return Links{types} }

// Bind sets Of and CountOf; mistakes are returned by key.
func (l Links) Bind(t *Type, of string, countOf []string) map[string]error {
	errs := map[string]error{}
	if of != "" {
		t.Of = l.find(of)
		if t.Of == nil || t.Of.Role != Header {
			errs["of"] = fmt.Errorf("%s is not a header of this file (as: header)", of)
		}
	}
	for _, name := range countOf {
		other := l.find(name)
		if other == nil || other.Role == Ignored {
			errs["count_of"] = fmt.Errorf("%s is not a record type that can be counted here", name)
			continue
		}
		t.CountOf = append(t.CountOf, other)
	}
	return errs
}

func (l Links) find(name string) *Type {
	i := slices.IndexFunc(l.types, func(t *Type) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return l.types[i]
}

// CheckKeys reports keys that do not apply to the role.
func CheckKeys(t *Type, columns int, of, count string, countOf, sums int) map[string]error {
	errs := map[string]error{}
	not := func(key, roles string) {
		errs[key] = fmt.Errorf("it needs a %s, but this type is %q (as)", roles, t.Role)
	}
	if columns > 0 && t.Role != Detail && t.Role != Header {
		not("columns", "detail or a header")
	}
	if columns == 0 && t.Role == Detail {
		errs["columns"] = errors.New("a detail needs them: they are the positions of its fields")
	}
	if of != "" && t.Role != Trailer && t.Role != Header {
		not("of", "trailer or a header")
	}
	for key, has := range map[string]bool{"count": count != "", "count_of": countOf > 0, "sums": sums > 0} {
		if has && t.Role != Trailer {
			not(key, "trailer")
		}
	}
	if countOf > 0 && count == "" {
		errs["count_of"] = errors.New("it defines what is counted, but there is no count")
	}
	return errs
}
