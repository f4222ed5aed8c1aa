package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// command is a sub-command. Help, the man page and the shell's completion are
// made from what is said here and from the flags that flags registers.
type command struct {
	name    string
	summary string          // completes "dgrdmacat NAME - "; one line
	args    string          // the positional arguments, as in "[FILE] URL"
	words   func() []string // not nil: which words the argument is one of
	dials   bool            // --to is an endpoint over UDP or Ethernet
	// elsewhere says what does here what flags of other programs do that there are not here.
	elsewhere map[string]string
	about     string // paragraphs; lines that begin with two spaces stay as they are
	// flags registers the flags and returns what runs once they are parsed.
	flags func(fs *flag.FlagSet) action
}

// action is what a command does: its positional arguments in args.
type action func(ctx context.Context, std *stdio, args []string) error

// stdio is what a command reads and writes: data on out, the rest on err.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a mistake in the command line, as opposed to a failure.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func badUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// flagSet returns the command's flags and what they set up.
func (c *command) flagSet() (*flag.FlagSet, action) {
	fs := flag.NewFlagSet("dgrdmacat "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are returned, help is printed by us
	fs.Usage = func() {}
	act := c.flags(fs)
	fs.VisitAll(wordErrors)
	return fs, act
}

// run parses args and acts.
func (c *command) run(ctx context.Context, std *stdio, args []string) error {
	fs, act := c.flagSet()
	rest, err := parseMixed(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		return c.help(std.out)
	}
	begun := beginLasting(fs)
	switch {
	case err != nil:
		err = badUsage("%w%s \"dgrdmacat %s -h\" lists the flags", err, c.here(fs, err), c.name)
	case c.args == "" && len(rest) > 0:
		err = badUsage("unexpected argument %q%s", rest[0], meant(fs, rest[0], c.dials))
	case begun != nil:
		err = begun
	default:
		err = act(ctx, std, rest)
	}
	if left := endLasting(fs); left != nil {
		err = errors.Join(err, left)
	}
	return err
}

// lasting is the value of a flag for which there is something to do before the command
// begins, even if that turns out to be a mistake, and when it has ended, however it did.
type lasting interface {
	begin() error
	end() error
}

func beginLasting(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if v, ok := f.Value.(lasting); ok {
			err = errors.Join(err, v.begin())
		}
	})
	return err
}

func endLasting(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if v, ok := f.Value.(lasting); ok {
			err = errors.Join(err, v.end())
		}
	})
	return err
}

// usage is the command's first line of help.
func (c *command) usage() string {
	fs, _ := c.flagSet()
	s := "dgrdmacat " + c.name
	if len(flagsOf(fs)) > 0 {
		s += " [flags]"
	}
	if c.args != "" {
		s += " " + c.args
	}
	return s
}

// oneFlag is a flag as help shows it.
type oneFlag struct {
	names string // "-o FILE", "--size N"
	text  string // what it does, with the default at the end
}

func flagsOf(fs *flag.FlagSet) (all []oneFlag) {
	fs.VisitAll(func(f *flag.Flag) {
		_, text := flag.UnquoteUsage(f)
		names := dashes(f.Name)
		switch value := valueOf(f); value {
		case "":
		case "int", "uint", "float":
			names += " N"
		case "string", "value":
			names += " WORD"
		case "duration":
			names += " TIME"
		default:
			names += " " + strings.ToUpper(value)
		}
		text = strings.ReplaceAll(text, "\n", " ")
		switch f.DefValue {
		case "", "0", "false", "0s":
		default:
			text += " (default " + f.DefValue + ")"
		}
		all = append(all, oneFlag{names, text})
	})
	return all
}

// alias is the value of another name of a flag.
type alias struct{ of *flag.Flag }

func (a *alias) String() string     { return a.of.Value.String() }
func (a *alias) Set(s string) error { return a.of.Value.Set(s) }
func (a *alias) IsBoolFlag() bool   { return isSwitch(a.of) }

// sameAs registers another name of a flag that there is.
func sameAs(fs *flag.FlagSet, short, name string) {
	fs.Var(&alias{fs.Lookup(name)}, short, "the same as "+dashes(name))
}

// valueOf names a flag's value; what is another name of a flag has that flag's.
func valueOf(f *flag.Flag) string {
	if a, is := f.Value.(*alias); is {
		f = a.of
	}
	if named, ok := f.Value.(interface{ valueName() string }); ok {
		return named.valueName()
	}
	value, _ := flag.UnquoteUsage(f)
	return value
}

// given returns one of the named flags that the command line has, as it is written, or "".
func given(fs *flag.FlagSet, names ...string) (found string) {
	fs.Visit(func(f *flag.Flag) {
		if slices.Contains(names, f.Name) {
			found = dashes(f.Name)
		}
	})
	return found
}

// dashes is how a flag is written: one for a letter, two for a word.
func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

const helpWidth = 96

func (c *command) help(w io.Writer) error {
	fs, _ := c.flagSet()
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", c.usage(), c.about)
	if all := flagsOf(fs); len(all) > 0 {
		b.WriteString("\nflags:\n")
		column := 0
		for _, f := range all {
			column = max(column, len(f.names)+2)
		}
		for _, f := range all {
			fmt.Fprintf(&b, "  %-*s%s\n", column, f.names, strings.Join(wrap(f.text, helpWidth-column-2), "\n"+strings.Repeat(" ", column+2)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap breaks a text into lines of at most that width.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
