package jobfile

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// checkSQL reports variables of a statement at positions that no database allows. The database is not known
// when a file is loaded, so it reports only mistakes in every dialect. It returns whether the statement is
// right.
func (b *binding) checkSQL(n *yamlfile.Node, key string, late *lateValue) bool {
	good := true
	refuse := func(h hole, msg, hint string) {
		b.collector.AddAt(n, h.begin, key+": "+msg, hint)
		good = false
	}
	lite, post := sqlscript.Variables(late.texts, tx.SQLite), sqlscript.Variables(late.texts, tx.Postgres)
	reported := ""
	for i, h := range late.holes {
		v := lite[i]
		if v.Place != post[i].Place || v.Text != post[i].Text {
			continue
		}
		switch v.Place {
		case sqlscript.InLiteral:
			if at := fmt.Sprint(v.Offset); at != reported {
				reported = at
				refuse(h, fmt.Sprintf("${%s} is inside of a quoted text, where SQL has no variables", h.text), "write "+joined(v, late))
			}
		case sqlscript.InName:
			refuse(h, fmt.Sprintf("${%s} is a value, and here SQL takes a name", h.text), "write the name of the table or column itself: SQL binds values only")
		case sqlscript.InComment:
			refuse(h, fmt.Sprintf("${%s} is in a comment", h.text), "leave it out; a literal ${ is written $${")
		case sqlscript.Free:
		}
	}
	if len(late.holes) > 0 && several(late.texts, tx.SQLite) && several(late.texts, tx.Postgres) {
		refuse(late.holes[0], "several statements take no variables", "make it one step for each statement; an `atomic` group runs them in one transaction")
	}
	return good
}

func several(texts []string, dialect tx.Dialect) bool {
	return len(sqlscript.Split(strings.Join(texts, "?"), dialect)) > 1
}

// joined is the literal that variable v is in, with || around its variables.
func joined(v sqlscript.Variable, late *lateValue) string {
	var parts []string
	for i, text := range v.Literal {
		if text != "" {
			parts = append(parts, "'"+text+"'")
		}
		if i+1 < len(v.Literal) {
			parts = append(parts, "${"+late.holes[v.First+i].text+"}")
		}
	}
	return strings.Join(parts, " || ")
}
