package table

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const (
	oidMoney       = 790
	modifierHeader = 4 // varchar(2) has the modifier 6
	microDigits    = 6
)

// modifier is from pg_attribute (-1 means none). nil means that values are
// stored unchanged.
func postgresLimit(oid uint32, modifier int) *limit {
	switch oid {
	case pgtype.Float4OID:
		return ofReal()
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return ofSeconds(modifier)
	case pgtype.VarcharOID:
		if modifier >= modifierHeader {
			return ofLength(modifier-modifierHeader, true)
		}
	case pgtype.BPCharOID:
		if modifier >= modifierHeader {
			return ofLength(modifier-modifierHeader, false)
		}
	case pgtype.NameOID:
		return &limit{from: row.String, why: "a name has at most 63 bytes", keep: func(v row.Value) (row.Value, change) {
			if v.Kind() == row.String && len(v.Str()) > maxName {
				return v, unfit
			}
			return v, unchanged
		}}
	case pgtype.ByteaOID:
		return ofEscapes()
	case pgtype.Float4ArrayOID, pgtype.TimestampArrayOID, pgtype.TimestamptzArrayOID, pgtype.VarcharArrayOID, pgtype.BPCharArrayOID:
		element := map[uint32]uint32{
			pgtype.Float4ArrayOID: pgtype.Float4OID, pgtype.TimestampArrayOID: pgtype.TimestampOID, pgtype.TimestamptzArrayOID: pgtype.TimestamptzOID,
			pgtype.VarcharArrayOID: pgtype.VarcharOID, pgtype.BPCharArrayOID: pgtype.BPCharOID,
		}[oid]
		if l := postgresLimit(element, modifier); l != nil {
			return l.ofElements()
		}
	}
	return textLimit(oid, modifier)
}

// The server accepts more texts for these types: it reads 10:00 from a text
// with a date as a time, and also reads now.
func textLimit(oid uint32, modifier int) *limit {
	digits := microDigits
	if modifier >= 0 && modifier < microDigits {
		digits = modifier
	}
	switch oid {
	case pgtype.TimeOID:
		return onlyTexts(fmt.Sprintf("expected HH:mm:ss with at most %d digits of a second", digits), func(text string) bool {
			fraction, ok := sqlvalue.Clock(text, false)
			return ok && len(fraction) <= digits
		})
	case pgtype.TimetzOID:
		return onlyTexts(fmt.Sprintf("expected HH:mm:ss+02:00, with an offset and at most %d digits of a second", digits), func(text string) bool {
			fraction, ok := sqlvalue.Clock(text, true)
			return ok && len(fraction) <= digits
		})
	case pgtype.IntervalOID:
		return ofInterval(modifier)
	case oidMoney:
		return ofText("expected an amount as 1234.50 or $1,234.50, with at most 2 digits after the point", amounts.MatchString)
	case pgtype.PointOID, pgtype.LsegOID, pgtype.PathOID, pgtype.BoxOID, pgtype.PolygonOID, pgtype.LineOID, pgtype.CircleOID:
		return ofText("its numbers are double precision, and keep 17 digits", func(text string) bool {
			return !slices.ContainsFunc(floats.FindAllString(text, -1), func(number string) bool {
				_, ok := sqlvalue.Convert(row.StringValue(number), row.Float)
				return !ok
			})
		})
	case pgtype.QCharOID:
		return ofText(`a "char" is one byte; declare the column char(n) or text`, func(text string) bool { return len(text) <= 1 })
	case pgtype.OIDOID, pgtype.XIDOID, pgtype.CIDOID:
		return ofText("expected a number from 0 to 4294967295", isUnsigned(32)) //nolint:mnd // bits
	case pgtype.XID8OID:
		return ofText("expected a number from 0 to 18446744073709551615", isUnsigned(64)) //nolint:mnd // bits
	case pgtype.DaterangeOID, pgtype.DatemultirangeOID:
		return ofRange("expected [yyyy-MM-dd,yyyy-MM-dd)", row.DateKind, func(string) bool { return true })
	case pgtype.TsrangeOID, pgtype.TsmultirangeOID:
		return ofRange("expected times as yyyy-MM-dd HH:mm:ss, without an offset", row.Timestamp, func(text string) bool { return !hasOffset(text) })
	case pgtype.TstzrangeOID, pgtype.TstzmultirangeOID:
		return ofRange("expected times as yyyy-MM-dd HH:mm:ss+02:00, with an offset", row.Timestamp, hasOffset)
	}
	return nil
}

var floats = regexp.MustCompile(`[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?`)

var amounts = regexp.MustCompile(`^\s*-?(\d+(\.\d{1,2}0*)?|\$\d{1,3}(,\d{3})*(\.\d{2})?)\s*$`)

// The server takes -1 for the highest number, and reads 010 as octal.
func isUnsigned(bits int) func(text string) bool {
	return func(text string) bool {
		n, err := strconv.ParseUint(text, 10, bits)
		return err == nil && strconv.FormatUint(n, 10) == text
	}
}

// ofReal keeps the shortest text of the nearest float32 (rule D7).
func ofReal() *limit {
	return &limit{
		why: "a real keeps about 7 digits; declare the column double precision or numeric",
		keep: func(v row.Value) (row.Value, change) {
			x := v.Float()
			if v.Kind() == row.Int {
				x = float64(v.Int())
			}
			near := row.Real(float32(x))
			switch {
			case near == x:
				return v, unchanged
			case near == 0, near-near != 0:
				return v, unfit
			}
			return row.FloatValue(near), rounded
		},
	}
}

func ofEscapes() *limit {
	return &limit{
		from: row.String,
		why:  "a text with a backslash is not the text of its bytes; declare the field bytes",
		keep: func(v row.Value) (row.Value, change) {
			if v.Kind() == row.String && strings.Contains(v.Str(), `\`) {
				return v, unfit
			}
			return v, unchanged
		},
	}
}

func ofSeconds(digits int) *limit {
	if digits < 0 || digits >= microDigits {
		return nil
	}
	unit := int64(1)
	for range microDigits - digits {
		unit *= 10
	}
	return &limit{
		why: fmt.Sprintf("the column keeps %d digits of a second", digits),
		keep: func(v row.Value) (row.Value, change) {
			micros := v.Time().UnixMicro()
			if micros%unit == 0 {
				return v, unchanged
			}
			return row.TimestampValue(time.UnixMicro(roundMicros(micros, unit))), rounded
		},
	}
}

// PostgreSQL rounds half away from 2000-01-01, where it begins to count.
func roundMicros(micros, unit int64) int64 {
	const epoch = 946_684_800_000_000
	since := micros - epoch
	if since < 0 {
		return epoch - (-since+unit/2)/unit*unit
	}
	return epoch + (since+unit/2)/unit*unit
}

// The server reads many forms of an interval, and itself reports invalid ones.
func ofInterval(modifier int) *limit {
	const fieldsShift, allFields, precision, allDigits = 16, 0x7fff, 0xffff, 0xffff
	digits, fields := microDigits, allFields
	if modifier >= 0 {
		fields = modifier >> fieldsShift & allFields
		if p := modifier & precision; p != allDigits {
			digits = p
		}
	}
	if units, limited := unitsOf(fields); limited {
		return &limit{from: row.String, why: "the column drops what is smaller than its last field: declare it interval", keep: func(v row.Value) (row.Value, change) {
			if v.Kind() == row.String && !units.MatchString(v.Str()) {
				return v, unfit
			}
			return v, unchanged
		}}
	}
	return &limit{
		from: row.String,
		why:  fmt.Sprintf("the column keeps whole months and days, and %d digits of a second", digits),
		keep: func(v row.Value) (row.Value, change) {
			if v.Kind() == row.String && !sqlvalue.KeepsInterval(v.Str(), digits) {
				return v, unfit
			}
			return v, unchanged
		},
	}
}

// unitsOf returns false if the fields go down to the second, so nothing is
// dropped.
func unitsOf(fields int) (*regexp.Regexp, bool) {
	const month, year, day, hour, minute, second = 1 << 1, 1 << 2, 1 << 3, 1 << 10, 1 << 11, 1 << 12
	units := "years?"
	switch {
	case fields&second != 0:
		return nil, false
	case fields&minute != 0:
		units = "years?|mons?|months?|days?|hours?|minutes?"
	case fields&hour != 0:
		units = "years?|mons?|months?|days?|hours?"
	case fields&day != 0:
		units = "years?|mons?|months?|days?"
	case fields&month != 0:
		units = "years?|mons?|months?"
	case fields&year == 0:
		return nil, false
	}
	return regexp.MustCompile(`^\s*([+-]?\d+ *(` + units + `)\s*)+$`), true
}

// The server reads bounds by its DateStyle and TimeZone.
func ofRange(why string, kind row.Kind, also func(text string) bool) *limit {
	return onlyTexts(why, func(text string) bool {
		bounds := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`[](){},"`, r) })
		for _, bound := range bounds {
			bound = strings.TrimSpace(bound)
			if bound == "" || bound == "empty" || bound == "infinity" || bound == "-infinity" {
				continue
			}
			if _, ok := sqlvalue.Convert(row.StringValue(bound), kind); !ok || !also(bound) {
				return false
			}
		}
		return true
	})
}

func hasOffset(text string) bool {
	const day = len("2006-01-02")
	return len(text) > day && strings.ContainsAny(text[day:], "+-Zz")
}
