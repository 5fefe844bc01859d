"""Control messages made at random from the grammar in rendezvous/protocol/control: the names and
types of fields are read from the headers, so a new field takes part by itself."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'rendezvous/protocol/control'
NUMBERS = (0, 1, 2, 3, -1, 7, 127, 255, 2**16, 2**31, 2**32, 10**9, 2**53, 2**62, 2**63 - 1,
           -2**63, 2**64 - 1)
TEXTS = ('', 'x', 'default', '127.0.0.1', '::1', '10.0.0.1', 'a' * 300, '\x1b[2J\x07',
         '\u202e\u2066', '../../etc', '%s%n', '\n\r\0', '0' * 64, '{"a":1}')


def _types(text):
    """Members of each struct: {'Hello': {'protocol': 'int64_t', ...}}."""
    found = {}
    for name, body in re.findall(r'^struct (\w+) \{\n(.*?)^\};', text, re.MULTILINE | re.DOTALL):
        plain = re.sub(r'//[^\n]*', '', body)
        member = r'^\s*([\w:]+(?:<[^;={]*>)?)\s+(\w+)\s*(?:=[^;]*|\{[^;]*\})?;'
        pairs = re.findall(member, plain, re.MULTILINE)
        found.setdefault(name, {member: kind for kind, member in pairs})
    return found


class Grammar:
    """Makes messages as (name, fields). `known` is what a peer has received or can find out: by
    type, values that fit the job under test."""

    def __init__(self, random):
        self.random = random
        folders = (FOLDER, ROOT / 'rendezvous', ROOT / 'common')
        headers = ''.join(path.read_text() for folder in folders
                          for path in sorted(folder.rglob('*.hpp')))
        fields = (FOLDER / 'control_fields.hpp').read_text()
        types = _types(headers)
        self.structs = {}
        pattern = r'^void fields\(auto&&(?: v)?, (\w+)&(?: m)?\) \{(.*?)\}$'
        for struct, body in re.findall(pattern, fields, re.MULTILINE | re.DOTALL):
            members = re.findall(r'v\("(\w+)", m\.(\w+)\)', body)
            self.structs[struct] = {name: types[struct][member] for name, member in members}
        self.names = dict(re.findall(r'name_of\(const (\w+)&\) \{ return "(\w+)"', fields))
        self.known = {'int64_t': [1, 2], 'std::string': ['fake']}

    def message(self, struct=None):
        struct = struct or self.random.choice(list(self.names))
        return self.names[struct], self.fields(struct)

    def fields(self, struct):
        return {name: self.value(kind) for name, kind in self.structs[struct].items()}

    def value(self, kind):
        if self.random.random() < 0.02:
            kind = self.random.choice(('int64_t', 'std::string', 'bool', 'std::vector<bool>'))
        inner = re.fullmatch(r'std::(optional|vector|map)<(.*)>', kind)
        if inner and inner[1] == 'optional':
            return None if self.random.random() < 0.5 else self.value(inner[2])
        if inner:
            length = self.random.choice((0, 0, 1, 2, 3, 200))
            return [self.value(inner[2].split(',')[-1].strip()) for _ in range(length)]
        if kind in self.structs:
            return self.fields(kind)
        if kind == 'bool':
            return self.random.random() < 0.5
        if kind == 'std::string':
            if self.random.random() < 0.002:
                return 'b' * 70000
            return self.random.choice((*self.known['std::string'], *TEXTS))
        # Numbers, times, ids and enums.
        if self.random.random() < 0.6:
            return self.random.choice(self.known['int64_t'])
        return self.random.choice(NUMBERS)

    def learn(self, value):
        """Takes the values of a message that was received."""
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, dict):
            for each in value.values():
                self.learn(each)
        elif isinstance(value, list):
            for each in value:
                self.learn(each)
        elif isinstance(value, (int, str)):
            known = self.known['int64_t' if isinstance(value, int) else 'std::string']
            if value not in known:
                known.append(value)
            if len(known) > 60:
                known.pop(self.random.randrange(len(known)))
