package cli_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/cli"
)

const goldenDir = "../testdata/golden"

func TestMain(m *testing.M) {
	// The test binary doubles as the rehome command of the scripts.
	testscript.Main(leakChecked{m}, map[string]func(){
		"rehome": func() {
			ctx, stop := cli.NotifyContext(context.Background())
			defer stop()
			os.Exit(cli.Run(ctx, cli.Options{Version: "test"}, os.Args[1:]))
		},
	})
}

type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	code := m.M.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// The scripts in testdata/script are the documentation of what each command
// prints and when it fails. Commands beside testscript's own:
//
//	golden NAME               copy the golden table NAME to NAME.lance
//	exits CODE COMMAND...     run a command that must exit with CODE
//	json FILE PATH VALUE      the value at PATH (.a.b[0].c, or .a.length) is VALUE
//	keys FILE PATH NAME...    the object at PATH has these keys
//	remember DIR              note the content of a directory tree
//	unchanged DIR             it is what it was when noted
//	first VAR PATTERN         set VAR to the first file that matches
//	flip FILE OFFSET          invert a bit of a byte (negative: from the end)
//	shorten FILE BYTES        cut bytes off the end (negative: add zeros)
//	mkfifo FILE               make a FIFO
//	strange DIR               make a file whose name is not UTF-8
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("COLUMNS", "250") // as wide as the patterns; report19 narrows it
			env.Values["trees"] = map[string]string{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"golden": scriptGolden, "exits": scriptExits, "json": scriptJSON, "keys": scriptKeys,
			"remember": scriptRemember, "unchanged": scriptUnchanged, "first": scriptFirst,
			"flip": scriptFlip, "shorten": scriptShorten, "mkfifo": scriptMkfifo, "strange": scriptStrange,
		},
	})
}

func want(ts *testscript.TestScript, neg bool, args []string, least int, usage string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func scriptGolden(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "golden NAME")
	from := filepath.Join(goldenDir, args[0], "t.lance")
	ts.Check(os.CopyFS(ts.MkAbs(args[0]+".lance"), os.DirFS(from)))
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "exits CODE COMMAND...")
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != code {
		ts.Fatalf("%s exits %d, want %d", strings.Join(args[1:], " "), got, code)
	}
}

// lookup walks a parsed document along .name, [i] and .length.
func lookup(ts *testscript.TestScript, file, path string) any {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("%s is no JSON document: %v", file, err)
	}
	if dec.More() {
		ts.Fatalf("%s holds more than one JSON document", file)
	}
	at := doc
	for _, step := range strings.FieldsFunc(strings.ReplaceAll(path, "[", ".["), func(r rune) bool { return r == '.' }) {
		switch v := at.(type) {
		case map[string]any:
			if _, ok := v[step]; !ok {
				ts.Fatalf("%s: no %q in %v", path, step, v)
			}
			at = v[step]
		case []any:
			if step == "length" {
				at = json.Number(strconv.Itoa(len(v)))
				continue
			}
			i, err := strconv.Atoi(strings.Trim(step, "[]"))
			if err != nil || i < 0 || i >= len(v) {
				ts.Fatalf("%s: no %s in a list of %d", path, step, len(v))
			}
			at = v[i]
		default:
			ts.Fatalf("%s: %v has no %s", path, at, step)
		}
	}
	return at
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	v := lookup(ts, args[0], args[1])
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		ts.Check(err)
		text = string(b)
	}
	if (text == args[2]) == neg {
		ts.Fatalf("%s is %s", args[1], text)
	}
}

func scriptKeys(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, "keys FILE PATH NAME...")
	object, ok := lookup(ts, args[0], args[1]).(map[string]any)
	if !ok {
		ts.Fatalf("%s is no object", args[1])
	}
	for _, name := range args[2:] {
		if _, ok := object[name]; !ok {
			ts.Fatalf("%s has no %q", args[1], name)
		}
	}
}

// treeHash covers names, sizes and contents of every file below dir.
func treeHash(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(rel), len(b))
		h.Write(b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func scriptRemember(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "remember DIR")
	sum, err := treeHash(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Value("trees").(map[string]string)[args[0]] = sum
}

func scriptUnchanged(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: unchanged DIR")
	}
	sum, err := treeHash(ts.MkAbs(args[0]))
	ts.Check(err)
	if (sum == ts.Value("trees").(map[string]string)[args[0]]) == neg {
		ts.Fatalf("%s: changed is %v", args[0], !neg)
	}
}

func scriptFirst(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "first VAR PATTERN")
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) == 0 {
		ts.Fatalf("nothing matches %s", args[1])
	}
	slices.Sort(found)
	ts.Setenv(args[0], found[0])
}

func scriptFlip(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "flip FILE OFFSET")
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0x10
	ts.Check(os.WriteFile(path, b, 0o644))
}

func scriptShorten(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "shorten FILE BYTES")
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-n))
}

func scriptMkfifo(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "mkfifo FILE")
	ts.Check(ts.Exec("mkfifo", ts.MkAbs(args[0])))
}

func scriptStrange(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "strange DIR")
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), "\xff\xfe"), nil, 0o644))
}
