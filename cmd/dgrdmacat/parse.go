package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"strings"
)

// unknownFlag is a flag that the command does not have.
type unknownFlag struct{ name string }

func (e *unknownFlag) Error() string { return "there is no flag " + dashes(e.name) }

// parseMixed parses flags wherever they stand among the arguments, up to "--",
// and returns the other arguments. After a mistake it goes on, for the flags that last.
// [flag.FlagSet.Parse] would tell its mistakes in words alone, and with one dash.
func parseMixed(fs *flag.FlagSet, args []string) (rest []string, wrong error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			return append(rest, args...), wrong
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		f := fs.Lookup(name)
		var err error
		switch {
		case name == "" || name[0] == '-':
			err = fmt.Errorf("%q is no flag: need one or two dashes and a name", arg)
		case f == nil && (name == "h" || name == "help"):
			return nil, flag.ErrHelp
		case f == nil:
			err = &unknownFlag{name}
		case isSwitch(f):
			if !hasValue {
				value = "true"
			}
			if fs.Set(name, value) != nil {
				err = fmt.Errorf("%s %q: need true or false", dashes(name), value)
			}
		case !hasValue && len(args) == 0:
			err = fmt.Errorf("%s needs a value", dashes(name))
		default:
			if !hasValue {
				value, args = args[0], args[1:]
			}
			if err = fs.Set(name, value); err != nil {
				err = fmt.Errorf("%s %q: %w", dashes(name), value, err)
			}
		}
		wrong = cmp.Or(wrong, err)
	}
	return rest, wrong
}

// isSwitch reports whether a flag is given without a value.
func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// here says after an error of the flags what in this command does what a flag does that there is not: one of another program,
// or one that is misspelt.
func (c *command) here(fs *flag.FlagSet, err error) string {
	var unknown *unknownFlag
	if !errors.As(err, &unknown) {
		return didYouMean("")
	}
	if does := c.elsewhere[unknown.name]; does != "" {
		return ": here that is " + does + ";"
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if like := closest(unknown.name, names); like != "" {
		return didYouMean(dashes(like))
	}
	return didYouMean("")
}
