package csv

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type types struct {
	plan    *recordtypes.Plan
	kinds   []recordType
	columns [][]int // of each type: the field for each of its columns, from 0
	sums    [][]int
	typeAt  int
}

// compileRecords returns nil if the file has only one type.
func compileRecords(cfg *readerConfig, itemType item.Type) (*types, error) {
	if cfg.Records == nil {
		return nil, nil
	}
	if itemType == nil || itemType.Schema() != nil && itemType.Schema().IsOpen() {
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("the item type is missing: a file with several record types has no header that names the fields")}
	}
	if err := hasColumns(itemType, "item"); err != nil {
		return nil, err
	}
	schema := itemType.Schema()
	p := &types{typeAt: max(cfg.TypeAt, 1) - 1}
	var list []*recordtypes.Type
	var errs []error
	add := func(name, key string, err error) {
		path := "records." + name
		if key != "" {
			path += "." + key
		}
		errs = append(errs, &registry.ConfigError{Key: path, Err: err})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Records)) {
		kind := cfg.Records[name]
		t := &recordtypes.Type{Name: name, Role: recordtypes.Role(cmp.Or(kind.As, string(recordtypes.Detail))), HasCount: kind.Count != 0}
		count := ""
		if kind.Count != 0 {
			count = strconv.Itoa(kind.Count)
		}
		for key, err := range recordtypes.CheckKeys(t, len(kind.Columns), kind.Of, count, len(kind.CountOf), len(kind.Sums)) {
			add(name, key, err)
		}
		list, p.kinds = append(list, t), append(p.kinds, kind)
		p.columns = append(p.columns, p.bindColumns(t, kind, schema, func(key string, err error) { add(name, key, err) }))
	}
	links := recordtypes.NewLinks(list)
	for i, t := range list {
		for key, err := range links.Bind(t, p.kinds[i].Of, p.kinds[i].CountOf) {
			add(t.Name, key, err)
		}
		p.sums = append(p.sums, p.bindSums(t, p.kinds[i], schema, func(key string, err error) { add(t.Name, key, err) }))
	}
	if len(errs) == 0 {
		plan, wrong := recordtypes.New(schema, list, true)
		p.plan = plan
		for name, err := range wrong {
			add(name, "", err)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return p, errors.Join(errs...)
}

func (p *types) bindColumns(t *recordtypes.Type, kind recordType, schema *row.Schema, bad func(key string, err error)) (columns []int) {
	for _, name := range slices.Sorted(maps.Keys(kind.Columns)) {
		at, f := kind.Columns[name], schema.Index(name)
		switch {
		case f < 0:
			hint := "its fields are " + strings.Join(schema.Names(), ", ")
			if near := nearest.Name(name, schema.Names()); near != "" {
				hint = "did you mean " + near + "?"
			}
			bad("columns."+name, fmt.Errorf("the item has no field %s (%s)", name, hint))
			continue
		case at < 1 || kind.Fields > 0 && at > kind.Fields:
			bad("columns."+name, fmt.Errorf("%d is not the number of a field, from 1", at))
			continue
		}
		t.Fields, columns = append(t.Fields, f), append(columns, at-1)
	}
	for key, at := range map[string]int{"count": kind.Count, "fields": kind.Fields} {
		if at < 0 {
			bad(key, errors.New("it is negative"))
		}
	}
	return columns
}

func (p *types) bindSums(t *recordtypes.Type, kind recordType, schema *row.Schema, bad func(key string, err error)) (sums []int) {
	for _, name := range slices.Sorted(maps.Keys(kind.Sums)) {
		at, f := kind.Sums[name], schema.Index(name)
		switch {
		case f < 0:
			bad("sums."+name, fmt.Errorf("the item has no field %s", name))
		case schema.Field(f).Kind != row.Int && schema.Field(f).Kind != row.DecimalKind:
			bad("sums."+name, fmt.Errorf("the field is a %s; exact sums need int or decimal", schema.Field(f).Kind))
		case at < 1:
			bad("sums."+name, fmt.Errorf("%d is not the number of a field, from 1", at))
		default:
			t.Sums, sums = append(t.Sums, recordtypes.Sum{Name: name, Field: f}), append(sums, at-1)
		}
	}
	return sums
}
