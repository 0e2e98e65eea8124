package jobfile

import (
	"reflect"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// checkDefaults checks the file's `defaults` once, at their position. Steps take nothing from defaults with a
// mistake.
func (l *steps) checkDefaults() {
	d := &l.file.model.Defaults
	if d.Node == nil {
		return
	}
	before := l.problems.Reports()
	if at := d.Node.Get("chunk"); at != nil {
		l.checkChunkKeys(at, d.Chunk)
	}
	l.checkRetry(d.Node.Get("retry"), d.Retry)
	l.checkSkip(d.Node.Get("skip"), d.Skip)
	l.checkPositive(d.Node, "timeout", d.Timeout)
	if d.Transaction != nil {
		l.checkPositive(d.Node.Get("transaction"), "timeout", d.Transaction.Timeout)
	}
	l.file.badDefaults = l.problems.Reports() > before
}

// defaults are the defaults for steps, or only those of chunks if they have a mistake.
func (f *fileDef) defaults() defaultsModel {
	if f.badDefaults {
		return defaultsModel{Chunk: f.model.Defaults.Chunk}
	}
	return f.model.Defaults
}

// merged is a value of a step, completed by the default; either may be nil.
func merged[T any](n *yamlfile.Node, own *T, at *yamlfile.Node, byDefault *T) *T {
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
	mergeDefaults(n, reflect.ValueOf(&both).Elem(), at, reflect.ValueOf(*byDefault))
	return &both
}

// mergeDefaults sets each field of struct v, if its key is missing in node n and present in at, to the field
// of d, which has the type of v. It merges nested structs in the same way.
func mergeDefaults(n *yamlfile.Node, v reflect.Value, at *yamlfile.Node, d reflect.Value) {
	for _, f := range yamlfile.FieldsOf(v.Type()).Fields {
		own, given := valueOf(n, f), valueOf(at, f)
		switch {
		case given == nil:
		case own == nil:
			v.FieldByIndex(f.Index).Set(d.FieldByIndex(f.Index))
		case f.Type.Kind() == reflect.Struct:
			mergeDefaults(own, v.FieldByIndex(f.Index), given, d.FieldByIndex(f.Index))
		}
	}
}

// valueOf returns a field's node in n, which may be the value of the main field.
func valueOf(n *yamlfile.Node, f yamlfile.Field) *yamlfile.Node {
	if n != nil && n.Kind != yamlfile.Map && f.Main {
		return n
	}
	return n.Get(f.Key)
}

// inherit completes the timeout and the transaction of a step by the defaults.
func (l *steps) inherit(s *stepDef) {
	d := l.file.defaults()
	s.timeout, s.transaction = s.model.Timeout, s.model.Transaction
	if s.model.Tasks == nil && s.model.Node.Get("timeout") == nil {
		s.timeout = d.Timeout
	}
	if of := s.element.list.parent; s.model.Tasks == nil && (of == nil || of.kind != atomicKind) {
		s.transaction = l.file.withDefaults(s.model.Node, s.model.Transaction)
	}
}

// transaction is the transaction of a step; nil means that nothing is configured. A tasklet without one does
// not take the defaults.
func (f *fileDef) transaction(s *stepDef) *transactionModel {
	own, propagation := s.model.Transaction, tx.Propagation("")
	if own != nil {
		propagation = tx.Propagation(own.Propagation)
	}
	if propagation == "" && s.tasklet != nil && s.tasklet.component.NoTransaction {
		propagation = tx.NotSupported
	}
	switch propagation {
	case tx.NotSupported, tx.Never, tx.Supports:
		return own
	case "", tx.Required, tx.RequiresNew, tx.Nested, tx.Mandatory:
	}
	return s.transaction
}

// groupTransaction is the transaction of an atomic group; nil means that nothing is configured.
func (f *fileDef) groupTransaction(e *elementDef) *transactionModel {
	return f.withDefaults(e.model.node, e.model.atomic.Transaction)
}

// withDefaults completes the transaction of an element at node n.
func (f *fileDef) withDefaults(n *yamlfile.Node, own *transactionModel) *transactionModel {
	d := f.defaults()
	if d.Transaction == nil {
		return own
	}
	at := d.Node.Get("transaction")
	byDefault := &transactionModel{At: yamlfile.At{Node: at}, transactionDefaults: *d.Transaction}
	return merged(n.Get("transaction"), own, at, byDefault)
}
