package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	// mysqlBytes and mysqlVariables bound a statement of several rows, and so does max_allowed_packet.
	mysqlBytes     = 1 << 20
	mysqlVariables = 65535
	// the rest of a packet
	packetHead = 4 << 10
)

type mysqlBatch struct {
	records [][]row.Value
	args    []any
	sizes   []int // of the records, in bytes, at most
}

func (b *mysqlBatch) encode(p *plan, records [][]row.Value) error {
	b.forget()
	b.records = records
	head := packetHead + len(p.mysqlInsert(1))
	for n, record := range records {
		size := len(p.cols)
		for i := range p.cols {
			v, err := p.value(record, i)
			if err != nil {
				return &item.RecordError{Index: n, Err: err}
			}
			arg := sqlvalue.MySQL(v)
			size += sizeOf(arg)
			b.args = append(b.args, arg)
		}
		if p.packet > 0 && size+head > p.packet {
			return &item.RecordError{Index: n, Err: exception.InvalidItem("", exception.ClassInvalidItem,
				fmt.Errorf("it may take %d bytes, and a statement has at most %d (max_allowed_packet of the server)", size+head, p.packet))}
		}
		b.sizes = append(b.sizes, size)
	}
	return nil
}

// The driver escapes each character of a text with at most one more.
func sizeOf(arg any) int {
	const number = 24
	switch x := arg.(type) {
	case string:
		return 2*len(x) + number
	case []byte:
		return 2*len(x) + number
	}
	return number
}

func (b *mysqlBatch) forget() {
	b.records = nil
	clear(b.args)
	b.args, b.sizes = b.args[:0], b.sizes[:0]
}

func (b *mysqlBatch) send(ctx context.Context, conn tx.Conn, p *plan) error {
	width := len(p.cols)
	mode := p.config.mode()
	if mode == modeInsert || mode == modeUpsert && p.onlyKey {
		return b.sendRows(ctx, conn, p)
	}
	for n := range b.records {
		args := b.args[n*width : (n+1)*width]
		var found bool
		var err error
		switch mode {
		case modeDelete:
			_, err = rowOf(ctx, conn, p.mysqlDelete(), args)
		case modeUpdate:
			found, err = rowOf(ctx, conn, p.mysqlUpdate(), p.setFirst(args))
			if err == nil && !found && p.config.needsRows() {
				err = p.missing(b.records[n])
			}
		default:
			err = p.upsertOne(ctx, conn, args)
		}
		if err != nil {
			return &item.RecordError{Index: n, Err: err}
		}
	}
	return nil
}

func (b *mysqlBatch) sendRows(ctx context.Context, conn tx.Conn, p *plan) error {
	width, head := len(p.cols), packetHead+len(p.mysqlInsert(1))
	most := mysqlBytes
	if p.packet > 0 {
		most = min(most, p.packet-head)
	}
	for from := 0; from < len(b.records); {
		to, size := from, 0
		for to < len(b.records) && (to+1-from)*width <= mysqlVariables && (to == from || size+b.sizes[to] <= most) {
			size += b.sizes[to]
			to++
		}
		if _, err := conn.ExecContext(ctx, p.mysqlInsert(to-from), b.args[from*width:to*width]...); err != nil {
			if to-from == 1 {
				err = &item.RecordError{Index: from, Err: err}
			}
			return err
		}
		from = to
	}
	return nil
}

// mysqlInsert inserts n rows. With the key as the only unique index, an upsert changes the row that is there: VALUES(c)
// is understood by MySQL and by MariaDB.
func (p *plan) mysqlInsert(n int) string {
	if text, ok := p.texts[n]; ok {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "insert into %s (%s) values ", p.into, quotedList(p.names()))
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(p.cols)), ",") + ")"
	b.WriteString(strings.TrimSuffix(strings.Repeat(one+",", n), ","))
	if p.config.mode() == modeUpsert && p.onlyKey {
		var set []string
		for i := range p.cols {
			if name := quoted(p.cols[i].name); !p.isKey(i) || p.cols[i].kind == row.String {
				set = append(set, name+" = values("+name+")")
			}
		}
		b.WriteString(" on duplicate key update " + strings.Join(p.mysqlSet(set), ", "))
	}
	return b.String()
}

// mysqlUpdate has the variables of setFirst.
func (p *plan) mysqlUpdate() string {
	var set []string
	for i := range p.cols {
		if !p.isKey(i) {
			set = append(set, quoted(p.cols[i].name)+" = ?")
		}
	}
	return "update " + p.into + " set " + strings.Join(p.mysqlSet(set), ", ") + p.mysqlWhere()
}

func (p *plan) mysqlSet(columns []string) []string {
	if p.cleared != "" {
		columns = append(columns, p.cleared)
	}
	if len(columns) == 0 { // an upsert of keys
		name := quoted(p.cols[p.keys[0]].name)
		return []string{name + " = " + name}
	}
	return columns
}

func (p *plan) mysqlDelete() string { return "delete from " + p.into + p.mysqlWhere() }

func (p *plan) mysqlWhere() string {
	var where []string
	for _, i := range p.keys {
		variable := "?"
		if p.cols[i].compared != "" {
			variable = p.cols[i].compared
		}
		where = append(where, quoted(p.cols[i].name)+" = "+variable)
	}
	return " where " + strings.Join(where, " and ")
}

func (p *plan) setFirst(args []any) []any {
	list := make([]any, 0, len(args))
	for i, arg := range args {
		if !p.isKey(i) {
			list = append(list, arg)
		}
	}
	for _, i := range p.keys {
		list = append(list, args[i])
	}
	return slices.Clip(list)
}
