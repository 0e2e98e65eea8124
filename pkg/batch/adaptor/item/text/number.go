package text

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (c *cell) setForm(column columnConfig, kind row.Kind, length int) error {
	c.form, c.sign = byName[form](formNames[:], column.Format), byName[sign](signNames[:], column.Sign)
	if c.form == formText {
		if column.Sign != "" {
			return fmt.Errorf("sign: it needs the format zoned, packed or binary; a text has its sign before its digits")
		}
		return nil
	}
	separate := c.sign == signTrailingSeparate || c.sign == signLeadingSeparate
	switch {
	case kind != row.Int && kind != row.DecimalKind:
		return fmt.Errorf("format: %s is for int and decimal; the field is of type %s", c.form, kind)
	case c.form != formZoned && length == 0:
		return fmt.Errorf("format: a %s number may contain the bytes of a line end: set the length of the records", c.form)
	case c.form != formZoned && c.sign != signTrailing && c.sign != signNone:
		return fmt.Errorf("sign: %s needs the format zoned; a %s number has trailing or none", c.sign, c.form)
	case c.form == formBinary && c.width() > 8:
		return fmt.Errorf("at: a binary number has 1 to 8 bytes, not %d", c.width())
	case separate && c.width() < 2:
		return fmt.Errorf("at: with a sign next to the digits there is no room for a digit")
	case kind == row.DecimalKind && column.Decimals == nil:
		return fmt.Errorf("decimals: the file does not say how many digits a %s number has after its point; set decimals, 0 if there are none", c.form)
	case column.Align != "" || column.Pad != "" && column.Pad != " ":
		return fmt.Errorf("format: a %s number fills its column: omit align and pad", c.form)
	}
	return nil
}

// raw is the characters, or with a codec the bytes.
func (c cell) parseNumber(raw string, of *codec, f *row.Field) (row.Value, error) {
	if c.isBlank(raw, of) && (f.Nullable || !f.Default.IsNull()) {
		return f.Parse("")
	}
	negative, digits, err := c.digits(raw, of)
	if err == nil && negative && c.sign == signNone {
		err = fmt.Errorf("it is negative, but the column has no sign (sign: none)")
	}
	if err != nil {
		shown := strconv.Quote(raw)
		if of != nil {
			shown = fmt.Sprintf("%X", raw)
		}
		return f.Coerced(raw, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s is not a %s number: %w", f.Name, f.Quoted(shown), c.form, err)))
	}
	text := c.plainText(negative, digits)
	if f.Nulls != nil && f.IsNull(text) {
		return f.Parse(text)
	}
	if f.Kind == row.Int {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return f.Coerced(text, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s is too large for an int", f.Name, f.Quoted(text))))
		}
		return row.IntValue(n), nil
	}
	d, err := row.ParseDecimal(text)
	if err != nil {
		return row.Value{}, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %w", f.Name, err))
	}
	return f.FitDecimal(d)
}

func (c cell) plainText(negative bool, digits string) string {
	decimals := max(c.decimals, 0)
	digits = strings.TrimLeft(digits, "0")
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if decimals > 0 {
		digits = digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
	}
	if negative && strings.Trim(digits, "0.") != "" {
		return "-" + digits
	}
	return digits
}

// Blanks are not a number, for packed nor are zero bytes. Every bit pattern of a binary number is one.
func (c cell) isBlank(raw string, of *codec) bool {
	blank := byte(' ')
	if of != nil {
		blank = of.blank
	}
	all := func(b byte) bool { return strings.Count(raw, string([]byte{b})) == len(raw) }
	return c.form != formBinary && all(blank) || c.form == formPacked && all(0)
}

func (c cell) digits(raw string, of *codec) (negative bool, digits string, err error) {
	if len(raw) < c.width() {
		return false, "", fmt.Errorf("it has %d of %d characters", len(raw), c.width())
	}
	switch c.form {
	case formPacked:
		return packedDigits(raw)
	case formBinary:
		return binaryDigits(raw, c.sign == signNone)
	default:
		return c.zonedDigits(raw, of != nil && of.ebcdic)
	}
}

func packedDigits(raw string) (negative bool, digits string, err error) {
	text := make([]byte, 0, 2*len(raw))
	for i := range len(raw) {
		high, low := raw[i]>>4, raw[i]&0xF
		if high > 9 {
			return false, "", fmt.Errorf("the first half of byte %d is not a digit", i+1)
		}
		text = append(text, '0'+high)
		if i == len(raw)-1 {
			negative, err = signOfHalf(low)
			break
		}
		if low > 9 {
			return false, "", fmt.Errorf("the second half of byte %d is not a digit", i+1)
		}
		text = append(text, '0'+low)
	}
	return negative, string(text), err
}

// C, F, A and E are plus, D and B are minus.
func signOfHalf(half byte) (negative bool, err error) {
	switch half {
	case 0xA, 0xC, 0xE, 0xF:
		return false, nil
	case 0xB, 0xD:
		return true, nil
	}
	return false, fmt.Errorf("%X is not a sign: C, F, A and E are plus, D and B are minus", half)
}

func binaryDigits(raw string, unsigned bool) (negative bool, digits string, err error) {
	var n uint64
	for i := range len(raw) {
		n = n<<8 | uint64(raw[i])
	}
	if top := uint(8*len(raw) - 1); !unsigned && n>>top == 1 {
		return true, strconv.FormatUint(-(n | ^uint64(0)<<top), 10), nil
	}
	return false, strconv.FormatUint(n, 10), nil
}

func (c cell) zonedDigits(raw string, ebcdic bool) (negative bool, digits string, err error) {
	at := -1
	switch c.sign {
	case signTrailing:
		at = len(raw) - 1
	case signLeading:
		at = 0
	case signTrailingSeparate:
		negative, err = signOfByte(raw[len(raw)-1], ebcdic)
		raw = raw[:len(raw)-1]
	case signLeadingSeparate:
		negative, err = signOfByte(raw[0], ebcdic)
		raw = raw[1:]
	case signNone:
	}
	if err != nil {
		return false, "", err
	}
	text := make([]byte, len(raw))
	for i := range len(raw) {
		digit, minus, ok := zonedDigit(raw[i], ebcdic, i == at)
		if !ok {
			return false, "", fmt.Errorf("position %d is not a digit", i+1)
		}
		text[i] = '0' + digit
		negative = negative || minus
	}
	return negative, string(text), nil
}

func signOfByte(b byte, ebcdic bool) (negative bool, err error) {
	plus, minus := byte('+'), byte('-')
	if ebcdic {
		plus, minus = 0x4E, 0x60
	}
	if b != plus && b != minus {
		return false, fmt.Errorf("there is no + or - next to its digits")
	}
	return b == minus, nil
}

// The sign is in the zone of EBCDIC, else in the characters { A to I and } J to R, or p to y for minus as
// in Micro Focus.
func zonedDigit(b byte, ebcdic, signed bool) (digit byte, minus, ok bool) {
	if ebcdic {
		zone := b >> 4
		digit = b & 0xF
		switch {
		case digit > 9 || zone < 0xA || zone != 0xF && !signed:
			return 0, false, false
		}
		return digit, zone == 0xB || zone == 0xD, true
	}
	switch {
	case '0' <= b && b <= '9':
		return b - '0', false, true
	case !signed:
		return 0, false, false
	case b == '{':
		return 0, false, true
	case b == '}':
		return 0, true, true
	case 'A' <= b && b <= 'I':
		return b - 'A' + 1, false, true
	case 'J' <= b && b <= 'R':
		return b - 'J' + 1, true, true
	case 'p' <= b && b <= 'y':
		return b - 'p', true, true
	}
	return 0, false, false
}

func (c cell) appendNumber(dst []byte, of *codec, f *row.Field, v row.Value) ([]byte, error) {
	wrong := func(format string, args ...any) ([]byte, error) {
		return dst, fmt.Errorf("field %s: "+format, append([]any{c.name}, args...)...)
	}
	if v.IsNull() {
		null := string(f.AppendText(nil, v))
		if null == "" && c.form != formBinary {
			return c.blanks(dst, of), nil
		}
		d, err := row.ParseDecimal(null)
		if err != nil {
			return wrong("a %s number cannot be null: set a number for null with null_if of the field, or with map", c.form)
		}
		v = row.DecimalValue(d)
	}
	digits, negative, err := c.scaled(v)
	switch {
	case err != nil:
		return wrong("%w", err)
	case negative && c.sign == signNone:
		return wrong("%s is negative, but the column has no sign (sign: none)", v)
	}
	places := c.width()
	switch {
	case c.form == formBinary:
		return c.appendBinary(dst, digits, negative)
	case c.form == formPacked:
		places = 2*c.width() - 1
	case c.sign == signTrailingSeparate, c.sign == signLeadingSeparate:
		places--
	}
	if len(digits) > places {
		return wrong("%s has %d digits, but its column has room for %d (at %s)", v, len(digits), places, c.span)
	}
	digits = strings.Repeat("0", places-len(digits)) + digits
	if c.form == formPacked {
		return appendPacked(dst, digits, c.signHalf(negative)), nil
	}
	return c.appendZoned(dst, digits, negative, of != nil && of.ebcdic), nil
}

func (c cell) blanks(dst []byte, of *codec) []byte {
	blank := byte(' ')
	if of != nil {
		blank = of.blank
	}
	for range c.width() {
		dst = append(dst, blank)
	}
	return dst
}

func (c cell) scaled(v row.Value) (digits string, negative bool, err error) {
	decimals := max(c.decimals, 0)
	d := v.Decimal()
	if v.Kind() == row.Int {
		d = row.DecimalOf(v.Int())
	}
	fit, err := d.Round(decimals, row.RoundDown)
	if err == nil && !fit.Equal(d) {
		err = fmt.Errorf("%s has more digits after the point than its column (decimals: %d); round(x, %d) drops them", v, decimals, decimals)
	}
	if err != nil {
		return "", false, err
	}
	text, negative := strings.CutPrefix(strings.Replace(fit.String(), ".", "", 1), "-")
	if text = strings.TrimLeft(text, "0"); text == "" {
		return "0", false, nil
	}
	return text, negative, nil
}

func (c cell) signHalf(negative bool) byte {
	switch {
	case c.sign == signNone:
		return 0xF
	case negative:
		return 0xD
	}
	return 0xC
}

func appendPacked(dst []byte, digits string, sign byte) []byte {
	for i := 0; i+1 < len(digits); i += 2 {
		dst = append(dst, (digits[i]-'0')<<4|(digits[i+1]-'0'))
	}
	return append(dst, (digits[len(digits)-1]-'0')<<4|sign)
}

func (c cell) appendBinary(dst []byte, digits string, negative bool) ([]byte, error) {
	bits := uint(8 * c.width())
	n, err := strconv.ParseUint(digits, 10, 64)
	most := ^uint64(0) >> (64 - bits)
	if c.sign != signNone {
		most >>= 1
	}
	if negative {
		most++
	}
	if err != nil || n > most {
		return dst, fmt.Errorf("field %s: %s is too large for %d bytes (at %s)", c.name, digits, c.width(), c.span)
	}
	if negative {
		n = -n
	}
	for shift := int(bits) - 8; shift >= 0; shift -= 8 {
		dst = append(dst, byte(n>>uint(shift)))
	}
	return dst, nil
}

func (c cell) appendZoned(dst []byte, digits string, negative, ebcdic bool) []byte {
	plus, minus, zone := byte('+'), byte('-'), byte('0')
	if ebcdic {
		plus, minus, zone = 0x4E, 0x60, 0xF0
	}
	mark := plus
	if negative {
		mark = minus
	}
	if c.sign == signLeadingSeparate {
		dst = append(dst, mark)
	}
	for i := range len(digits) {
		digit := digits[i] - '0'
		signed := c.sign == signTrailing && i == len(digits)-1 || c.sign == signLeading && i == 0
		switch {
		case !signed:
			dst = append(dst, zone|digit)
		case ebcdic:
			dst = append(dst, c.signHalf(negative)<<4|digit)
		case negative:
			dst = append(dst, "}JKLMNOPQR"[digit])
		default:
			dst = append(dst, "{ABCDEFGHI"[digit])
		}
	}
	if c.sign == signTrailingSeparate {
		dst = append(dst, mark)
	}
	return dst
}
