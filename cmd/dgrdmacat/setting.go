package main

import (
	"flag"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

// settingFlag is a flag for a setting of an endpoint: empty where it was not given.
type settingFlag struct {
	of   *settings.Setting
	text string
}

func (f *settingFlag) String() string { return f.text }

// noneBetweenUs is what those have to know who look for the right profile.
const noneBetweenUs = "between two dgrdmacats neither side has one"

// valueName stands for the value in help.
func (f *settingFlag) valueName() string {
	if strings.ToUpper(f.of.Value) != f.of.Value {
		return "WORD"
	}
	return f.of.Value
}

// choices are the words that complete it. Numbers besides are not told.
func (f *settingFlag) choices() []string { return f.of.Words }

// orDefault is what was given, or else what is so without it.
func (f *settingFlag) orDefault() string {
	if f.text == "" {
		return f.of.Otherwise()
	}
	return f.text
}

// Set implements [flag.Value].
func (f *settingFlag) Set(text string) error {
	_, err := f.of.Parse(text)
	f.text = text
	return err
}

// sayOnce refuses a setting for which an endpoint string says another value than the flag.
func (f *settingFlag) sayOnce(u url.Endpoint) error {
	if said, given := u.Options.Get(f.of.Option); given && f.text != "" && said != f.text {
		return badUsage("--%s %s, and the endpoint string says %s=%s: say it once", f.of.Flag, f.text, f.of.Option, said)
	}
	return nil
}

// register registers the flag; what more there is to know comes behind what the table
// says.
func (f *settingFlag) register(fs *flag.FlagSet, s *settings.Setting, more string) {
	f.of = s
	fs.Var(f, s.Flag, s.Help()+more)
}

// oneOf is a flag whose value is one of some words. Who reads it refuses others.
type oneOf struct {
	value *string
	words []string
}

func (f *oneOf) String() string { return *f.value }

// Set implements [flag.Value].
func (f *oneOf) Set(text string) error {
	*f.value = text
	return nil
}

func (f *oneOf) choices() []string { return f.words }

// someOf is a flag whose value is a list of some words, and that can be repeated.
type someOf struct {
	words []string
	add   func(string) error
}

func (f *someOf) String() string { return "" }

// Set implements [flag.Value].
func (f *someOf) Set(text string) error { return eachOf(f.add)(text) }

func (f *someOf) choices() []string { return f.words }

// idFlag is --id; 0: any.
type idFlag int

func (f *idFlag) String() string { return strconv.Itoa(int(*f)) }

// Set implements [flag.Value].
func (f *idFlag) Set(text string) error {
	v, err := settings.ID.Parse(text)
	*f = idFlag(v.Number)
	return err
}

// sayOnce refuses another id than that of an endpoint string.
func (f *idFlag) sayOnce(u url.Endpoint) error {
	if *f != 0 && u.ID != 0 && int(*f) != int(u.ID) {
		return badUsage("--%s %d, and the endpoint string has the id %d: say it once", settings.ID.Flag, *f, u.ID)
	}
	return nil
}

func (*idFlag) valueName() string { return settings.ID.Value }

func (f *idFlag) register(fs *flag.FlagSet, without string) {
	fs.Var(f, settings.ID.Flag, settings.ID.Means+", "+settings.ID.Range()+" (default "+without+")")
}
