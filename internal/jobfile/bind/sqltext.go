package bind

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// checkSQL reports variables of a statement at positions that no database allows. The database is not known
// when a file is loaded, so it reports only mistakes in every dialect. It returns whether the statement is
// right.
func (b *Binding) checkSQL(n *yamlfile.Node, key string, late *template.LateValue) bool {
	good := true
	refuse := func(h template.Hole, msg, hint string) {
		b.Collector.AddAt(n, h.Begin, key+": "+msg, hint)
		good = false
	}
	lite, post := sqlscript.Variables(late.Texts, tx.SQLite), sqlscript.Variables(late.Texts, tx.Postgres)
	reported := ""
	for i, h := range late.Holes {
		v := lite[i]
		if v.Place != post[i].Place || v.Text != post[i].Text {
			continue
		}
		switch v.Place {
		case sqlscript.InLiteral:
			if at := fmt.Sprint(v.Offset); at != reported {
				reported = at
				refuse(h, fmt.Sprintf("${%s} is inside of a quoted text, where SQL has no variables", h.Text), "write "+joined(v, late))
			}
		case sqlscript.InName:
			refuse(h, fmt.Sprintf("${%s} is a value, and here SQL takes a name", h.Text), "write the name of the table or column itself: SQL binds values only")
		case sqlscript.InComment:
			refuse(h, fmt.Sprintf("${%s} is in a comment", h.Text), "leave it out; a literal ${ is written $${")
		case sqlscript.Free:
		}
	}
	if len(late.Holes) > 0 && several(late.Texts, tx.SQLite) && several(late.Texts, tx.Postgres) {
		refuse(late.Holes[0], "several statements take no variables", "make it one step for each statement; an `atomic` group runs them in one transaction")
	}
	return good
}

func several(texts []string, dialect tx.Dialect) bool {
	return len(sqlscript.Split(strings.Join(texts, "?"), dialect)) > 1
}

// joined is the literal that variable v is in, with || around its variables.
func joined(v sqlscript.Variable, late *template.LateValue) string {
	var parts []string
	for i, text := range v.Literal {
		if text != "" {
			parts = append(parts, "'"+text+"'")
		}
		if i+1 < len(v.Literal) {
			parts = append(parts, "${"+late.Holes[v.First+i].Text+"}")
		}
	}
	return strings.Join(parts, " || ")
}
