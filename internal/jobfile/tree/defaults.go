package tree

import (
	"reflect"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DatabaseOf is the name of the database of the step's writers or tasklet, else the job's.
func (f *File) DatabaseOf(s *Step) string {
	for _, u := range append([]*ComponentUse{s.Tasklet}, WithNested(s.Writers...)...) {
		if name, _ := u.Database(); name != "" {
			return name
		}
	}
	return f.Model.Database
}

// AttrOf is the transaction of a tasklet step, or of each chunk.
func (f *File) AttrOf(s *Step) tx.Attr {
	attr := f.Transaction(s).Attr()
	if attr.Propagation == "" && s.Tasklet != nil && s.Tasklet.Component.NoTransaction {
		attr.Propagation = tx.NotSupported
	}
	return attr
}

// Transaction is a step's transaction or nil; a tasklet without one does not take the defaults.
func (f *File) Transaction(s *Step) *language.Transaction {
	own, propagation := s.Model.Transaction, tx.Propagation("")
	if own != nil {
		propagation = tx.Propagation(own.Propagation)
	}
	if propagation == "" && s.Tasklet != nil && s.Tasklet.Component.NoTransaction {
		propagation = tx.NotSupported
	}
	switch propagation {
	case tx.NotSupported, tx.Never, tx.Supports:
		return own
	case "", tx.Required, tx.RequiresNew, tx.Nested, tx.Mandatory:
	}
	return s.Transaction
}

// GroupTransaction is a group's transaction, or nil.
func (f *File) GroupTransaction(e *Element) *language.Transaction {
	return f.WithDefaults(e.Model.Node, e.Model.Atomic.Transaction)
}

// WithDefaults completes the transaction of an element at node n.
func (f *File) WithDefaults(n *yamlfile.Node, own *language.Transaction) *language.Transaction {
	d := f.Defaults()
	if d.Transaction == nil {
		return own
	}
	at := d.Node.Get("transaction")
	byDefault := &language.Transaction{At: yamlfile.At{Node: at}, TransactionDefaults: *d.Transaction}
	return Merged(n.Get("transaction"), own, at, byDefault)
}

// Defaults are the defaults for steps, or only those of chunks if they have a mistake.
func (f *File) Defaults() language.Defaults {
	if f.BadDefaults {
		return language.Defaults{Chunk: f.Model.Defaults.Chunk}
	}
	return f.Model.Defaults
}

// Merged is a step's value, completed by the default; either may be nil.
func Merged[T any](n *yamlfile.Node, own *T, at *yamlfile.Node, byDefault *T) *T {
	switch {
	case byDefault == nil:
		return own
	case own == nil:
		if n == nil {
			return byDefault
		}
		return nil // it was refused
	}
	both := *own
	MergeDefaults(n, reflect.ValueOf(&both).Elem(), at, reflect.ValueOf(*byDefault))
	return &both
}

// MergeDefaults sets each field of v whose key is missing in n and present in at to d's, also in
// nested structs.
func MergeDefaults(n *yamlfile.Node, v reflect.Value, at *yamlfile.Node, d reflect.Value) {
	for _, f := range yamlfile.FieldsOf(v.Type()).Fields {
		own, given := ValueOf(n, f), ValueOf(at, f)
		switch {
		case given == nil:
		case own == nil:
			v.FieldByIndex(f.Index).Set(d.FieldByIndex(f.Index))
		case f.Type.Kind() == reflect.Struct:
			MergeDefaults(own, v.FieldByIndex(f.Index), given, d.FieldByIndex(f.Index))
		}
	}
}
