package main

import (
	"fmt"
	"strconv"
	"strings"
)

// percentFlag is a flag whose value is a share in percent, from 0 to most.
type percentFlag struct {
	text  string
	share float64 // 0 to 1
	most  float64 // percent
}

func percent(text string, most float64) percentFlag {
	f := percentFlag{most: most}
	if err := f.Set(text); err != nil {
		panic("BUG: " + err.Error()) // a default
	}
	return f
}

func (f *percentFlag) String() string { return f.text }

// Set implements [flag.Value]. A number below 1 has to have its sign: it may be meant as a share of 1.
func (f *percentFlag) Set(text string) error {
	digits, signed := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil || !(n >= 0 && n <= f.most):
		return fmt.Errorf("need percent, 0 to %g, such as 1 or 0.5%%", f.most)
	case !signed && n > 0 && n < 1:
		return fmt.Errorf("is that %g%% or %g%%? Give it with its sign", n, 100*n)
	}
	f.text, f.share = text, n/100
	return nil
}
