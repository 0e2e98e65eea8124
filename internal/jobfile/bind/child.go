package bind

import (
	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func ChildValue(f *model.File, v *Values, p model.ChildParameter) (text string, given bool, err error) {
	path, resolved := p.Spec.Type == core.TypePath, false
	switch {
	case len(p.Late.Holes) == 0:
		text = p.Late.Literal()
	case p.Late.Whole():
		x, err := v.Eval(p.Late.Holes[0])
		if err != nil || x == nil {
			return "", false, err
		}
		text = template.Text(x)
		resolved = v.resolved(p.Late)
	default:
		value, done, err := v.render(p.Late, path)
		if err != nil {
			return "", false, err
		}
		text, resolved = value.Text, done
	}
	if path && !resolved {
		text = f.Absolute(text)
	}
	return text, true, nil
}
