package settings

import (
	"fmt"
	"reflect"
)

// Complete gives the fields of a configuration that are zero their defaults, and fails if
// one is out of bounds.
func Complete(config any) error {
	c := reflect.ValueOf(config).Elem()
	for _, s := range All {
		f := c.FieldByName(s.Field)
		switch {
		case !f.IsValid() || s.Kind == Choice || s.Kind == Path:
			continue
		case f.IsZero() && s.Default == 0:
			continue
		case f.IsZero():
			f.SetInt(s.Default)
		}
		n := int64(0)
		if f.CanInt() {
			n = f.Int()
		} else {
			n = int64(f.Uint())
		}
		if !s.within(n) {
			return fmt.Errorf("dgrdma: %s in the configuration is %s, need %s", s.Field, s.number(n), s.limits())
		}
	}
	return nil
}

func (s *Setting) limits() string {
	if s.Kind == Time && s.Least == 0 {
		return "no negative time"
	}
	return s.Range()
}
