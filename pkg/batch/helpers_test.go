package batch_test

import (
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func rowOf(fields string) item.Type {
	var list []row.Field
	for _, f := range strings.Split(fields, ", ") {
		words := strings.Fields(f)
		kind, ok := row.KindByName(words[1])
		if !ok {
			panic(f)
		}
		list = append(list, row.Field{Name: words[0], Kind: kind, Nullable: len(words) > 2})
	}
	schema, err := row.NewSchema(list...)
	if err != nil {
		panic(err)
	}
	return item.RowOf("", schema)
}

func named(name, text string) registry.NamedExpression {
	return registry.NamedExpression{Name: name, Expression: registry.Expression{Text: text}}
}
