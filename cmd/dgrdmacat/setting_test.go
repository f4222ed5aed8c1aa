package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/settings"
)

// TestFlagsAreThoseOfTheTable: a setting's flag says what the table does in every command
// that has it, and takes what the table allows.
func TestFlagsAreThoseOfTheTable(t *testing.T) {
	for _, s := range settings.All {
		if s.Flag == "" {
			continue
		}
		commandsWith := 0
		for _, c := range commands {
			fs, _ := c.flagSet()
			f := fs.Lookup(s.Flag)
			if f == nil || c.name == "decode" && s == settings.ID { // which ids to show
				continue
			}
			commandsWith++
			if _, text := flag.UnquoteUsage(f); !strings.Contains(text, s.Means) {
				t.Errorf("%s --%s is %q, and not %q", c.name, s.Flag, text, s.Means)
			}
			if bool, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && bool.IsBoolFlag() {
				continue
			}
			wrong := "none such"
			if s.Kind == settings.Path {
				wrong = "" // any other one may be there when it is opened
			}
			if err := fs.Set(s.Flag, wrong); err == nil || !strings.HasPrefix(err.Error(), "need ") {
				t.Errorf("%s --%s takes anything: %v", c.name, s.Flag, err)
			}
			for _, w := range s.Words {
				if err := fs.Set(s.Flag, w); err != nil && (c.name != "bench" || w != "opencpi2") {
					t.Errorf("%s --%s %s: %v", c.name, s.Flag, w, err)
				}
			}
		}
		if commandsWith == 0 {
			t.Errorf("no command has --%s", s.Flag)
		}
	}
}
