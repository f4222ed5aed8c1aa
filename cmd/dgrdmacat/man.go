package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var manCommand = command{
	name: "man", summary: "print man pages, or write all of them", args: "[COMMAND]", words: commandNames,
	about: `Prints the man page of dgrdmacat, or of one of its commands. With --dir it writes
all of them there. man looks for pages in share/man beside each directory of programs in
PATH, and go install puts programs into $(go env GOPATH)/bin.

  dgrdmacat man bench | man -l -
  dgrdmacat man --dir "$(go env GOPATH)/share/man/man1"`,
	flags: func(fs *flag.FlagSet) action {
		dir := fs.String("dir", "", "write all pages into this `directory`, made if need be")
		return func(_ context.Context, std *stdio, args []string) error {
			switch {
			case len(args) > 0 && *dir != "":
				return badUsage("one COMMAND, or --dir for all")
			case *dir != "":
				return writePages(*dir)
			case len(args) == 0:
				_, err := fmt.Fprint(std.out, overviewPage())
				return err
			}
			c, rest, err := find(args)
			if err == nil && len(rest) > 0 {
				err = badUsage("one COMMAND, or --dir for all")
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(std.out, c.page())
			return err
		}
	},
}

func writePages(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeWholeText(filepath.Join(dir, "dgrdmacat.1"), overviewPage()); err != nil {
		return err
	}
	for _, c := range commands {
		if err := writeWholeText(filepath.Join(dir, "dgrdmacat-"+c.hyphened()+".1"), c.page()); err != nil {
			return err
		}
	}
	return nil
}

func overviewPage() string {
	var b strings.Builder
	b.WriteString(".TH DGRDMACAT 1\n.SH NAME\ndgrdmacat \\- one\\-sided writes over plain Ethernet and UDP\n" +
		".SH SYNOPSIS\n.B dgrdmacat\n.I COMMAND\n[flags] [arguments]\n.SH COMMANDS\n")
	for _, c := range commands {
		fmt.Fprintf(&b, ".TP\n.BR dgrdmacat\\-%s (1)\n%s\n", roff(c.hyphened()), roff(c.summary))
	}
	b.WriteString(exitSection)
	return b.String()
}

const exitSection = `.SH EXIT STATUS
0 if it did what it was told, 1 if something failed, also where a file, a name or an address that
the command line names is missing or wrong, 2 for a mistake in the command line itself.
Interrupted by SIGINT, SIGTERM or SIGHUP before it was done, it tidies up and ends by that signal; a
server that is meant to be ended so ends with 0.
Who closes a pipe that is the standard output, as head does, has enough: that is a failure
only of what others wait for, which serve, listen and send \-\-duplex do.
Data goes to standard output, everything else to standard error.
.SH ENVIRONMENT
.B NO_COLOR
switches colours off. With
.B TERM=dumb
a terminal gets lines of text only.
`

// page is the command's man page.
func (c *command) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH DGRDMACAT-%s 1\n.SH NAME\ndgrdmacat\\-%s \\- %s\n", strings.ToUpper(c.hyphened()), roff(c.hyphened()), roff(c.summary))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n", roff(c.usage()))
	inBlock := false
	for line := range strings.Lines(c.about) {
		line = strings.TrimRight(line, "\n")
		block := strings.HasPrefix(line, "  ")
		if block != inBlock && line != "" {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[block])
			inBlock = block
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if inBlock {
		b.WriteString(".fi\n")
	}
	fs, _ := c.flagSet()
	if all := flagsOf(fs); len(all) > 0 {
		b.WriteString(".SH OPTIONS\n")
		for _, f := range all {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(f.names), roff(f.text))
		}
	}
	b.WriteString(exitSection)
	b.WriteString(".SH SEE ALSO\n.BR dgrdmacat (1)\n")
	return b.String()
}

// roff escapes a line of text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
