package yamlfile

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (d *Decoder) scalar(n *Node, f Field, v reflect.Value) {
	if !d.Expect(n, Scalar, f) {
		return
	}
	value := Value{Text: n.Text}
	if d.Scalar != nil {
		var ok bool
		if value, ok = d.Scalar(n, f, v.Type()); !ok {
			return
		}
	}
	if err := Set(v, value); err != nil {
		d.Add(n, fmt.Sprintf("%s: %v", f.Key, err), scalarHint(v, value.Text))
		return
	}
	if text := value.Text; len(f.Enum) > 0 && v.Kind() == reflect.String {
		if value.Typed != nil {
			text = v.String()
		}
		switch {
		case slices.Contains(f.Enum, text):
		case slices.Contains(f.Later, text):
			d.Add(n, fmt.Sprintf("%s %s: this version does not support it yet", f.Key, text), "allowed: "+strings.Join(f.Enum, ", "))
		default:
			d.Add(n, fmt.Sprintf("%s: %q is not allowed", f.Key, text), f.cure(text))
		}
	}
}

func scalarHint(v reflect.Value, text string) string {
	switch word := strings.ToLower(text); {
	case v.Kind() == reflect.Bool && slices.Contains([]string{"yes", "on", "y", "1", "true"}, word):
		return "write true"
	case v.Kind() == reflect.Bool && slices.Contains([]string{"no", "off", "n", "0", "false"}, word):
		return "write false"
	case v.Type() == reflect.TypeFor[time.Duration]():
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return "write its unit: " + text + "s"
		}
	}
	return ""
}

// Set stores a value by the file's rules: bool is true or false, an int has no leading zero, a
// float is finite.
func Set(v reflect.Value, value Value) error {
	if value.Typed != nil {
		return setTyped(v, value.Typed)
	}
	return setText(v, value.Text)
}

func setText(v reflect.Value, text string) error {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		x, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration (such as 500ms, 90s, 1h30m)", text)
		}
		v.SetInt(int64(x))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is not a bool (true or false)", text)
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, err := parseInt(text, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(x)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		x, err := parseInt(text, 64)
		if err != nil {
			return err
		}
		if x < 0 || v.OverflowUint(uint64(x)) {
			return fmt.Errorf("%s is out of range", text)
		}
		v.SetUint(uint64(x))
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || strings.ContainsAny(text, "xX_") {
			return fmt.Errorf("%q is not a float", text)
		}
		v.SetFloat(x)
	case reflect.Interface:
		if v.NumMethod() > 0 {
			return fmt.Errorf("a %v cannot be written in a file", v.Type())
		}
		v.Set(reflect.ValueOf(text))
	default:
		return fmt.Errorf("a %v cannot be written in a file", v.Type())
	}
	return nil
}

func parseInt(text string, bits int) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789") == "" {
		return 0, fmt.Errorf("%q is not an int: a leading zero is not allowed", text)
	}
	if strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%q is not an int: write it without +", text)
	}
	x, err := strconv.ParseInt(text, 10, bits)
	switch {
	case err == nil:
		return x, nil
	case strings.Trim(digits, "0123456789") == "" && digits != "":
		return 0, fmt.Errorf("%s is out of range", text)
	}
	return 0, fmt.Errorf("%q is not an int", text)
}

func setTyped(v reflect.Value, typed any) error {
	from := reflect.ValueOf(typed)
	switch {
	case from.Type().AssignableTo(v.Type()):
		v.Set(from)
		return nil
	case v.Kind() == reflect.String:
		v.SetString(textOf(typed))
		return nil
	case from.Kind() == reflect.String:
		return setText(v, from.String())
	case v.Type() == reflect.TypeFor[time.Duration](), from.Type() == reflect.TypeFor[time.Duration]():
	case v.CanFloat() && (from.CanInt() || from.CanFloat()):
		if from.CanInt() {
			if _, exact := row.FloatOf(from.Int()); !exact {
				return fmt.Errorf("%v does not fit in a float, which has 53 bits", typed)
			}
		}
		v.Set(from.Convert(v.Type()))
		return nil
	case v.CanInt() && from.CanInt():
		if v.OverflowInt(from.Int()) {
			return fmt.Errorf("%v is out of range", typed)
		}
		v.SetInt(from.Int())
		return nil
	case v.CanUint() && from.CanInt():
		if from.Int() < 0 || v.OverflowUint(uint64(from.Int())) {
			return fmt.Errorf("%v is out of range", typed)
		}
		v.SetUint(uint64(from.Int()))
		return nil
	}
	return fmt.Errorf("a %T is no %v", typed, v.Type())
}

func textOf(typed any) string {
	if v, err := row.ValueOf(typed); err == nil {
		return v.String()
	}
	return fmt.Sprint(typed)
}
