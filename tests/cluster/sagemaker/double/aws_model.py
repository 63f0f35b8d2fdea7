"""Checks requests and replies against botocore's description of a service.

Uses the newest description that it finds. That of Debian 12 (botocore 1.29.27) lacks training plans, and that of Debian 13
(1.37.9) lacks the P6 instances; additions.json has what they lack.
"""
import gzip
import importlib.util
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = ('/usr/lib/python3/dist-packages/botocore/data', '/usr/lib/python3/dist-packages/awscli/botocore/data')
JAVA = {r'\p{Alnum}': 'a-zA-Z0-9', r'\p{L}': 'a-zA-Z\u00aa-\uffff', r'\p{Z}': r'\s', r'\p{N}': r'\d'}
TYPES = {'string': str, 'boolean': bool, 'integer': int, 'long': int, 'list': list, 'map': dict, 'structure': dict}


def data_folder():
    spec = importlib.util.find_spec('botocore')
    places = ([os.path.join(os.path.dirname(spec.origin), 'data')] if spec else []) + list(PLACES)
    for place in places:
        if os.path.isdir(os.path.join(place, 'sagemaker')):
            return place
    raise SystemExit('no description of SageMaker here: apt-get install python3-botocore')


class Model:
    def __init__(self, service, folder):
        versions = os.path.join(folder, service)
        path = os.path.join(versions, sorted(os.listdir(versions))[-1], 'service-2.json')
        with open(path, encoding='utf-8') if os.path.exists(path) else gzip.open(path + '.gz', 'rt', encoding='utf-8') as file:
            tree = json.load(file)
        self.shapes, self.operations = tree['shapes'], tree['operations']
        if service == 'sagemaker':
            with open(os.path.join(HERE, 'additions.json'), encoding='utf-8') as file:
                self._add(json.load(file), before_plans='TrainingPlanArn' not in self.shapes['ResourceConfig']['members'])

    def _add(self, additions, before_plans):
        """Adds what the description lacks. If it is older than training plans, this also replaces limits and required
        members."""
        self.operations = {**additions['operations'], **self.operations}
        for name, new in additions['shapes'].items():
            old = self.shapes.setdefault(name, new)
            for word, value in new.items():
                if word == 'members':
                    old['members'] = {**value, **old.get('members', {})}
                elif word == 'enum':
                    old['enum'] = old.get('enum', []) + [one for one in value if one not in old.get('enum', [])]
                elif before_plans:
                    old[word] = value

    def problems(self, operation, side, value):
        """Returns the parts of `value` that the description does not allow. `side` is 'input' or 'output'."""
        return list(self._problems(self.operations[operation][side]['shape'], value, '')) if (
            side in self.operations[operation]) else []

    def known(self, operation, value):
        """Returns a reply without the members that this description lacks."""
        return self._known(self.operations[operation]['output']['shape'], value)

    def _known(self, name, value):
        shape = self.shapes[name]
        if shape['type'] == 'structure':
            return {key: self._known(shape['members'][key]['shape'], one) for key, one in value.items()
                    if key in shape['members'] and one is not None}
        if shape['type'] == 'list':
            return [self._known(shape['member']['shape'], one) for one in value]
        return value

    def _problems(self, name, value, at):
        shape = self.shapes[name]
        kind, at_ = shape['type'], at or 'the request'
        wanted = TYPES.get(kind)
        if wanted and (not isinstance(value, wanted) or wanted is int and isinstance(value, bool)):
            yield f'{at_}: {kind} wanted, not {type(value).__name__}'
            return
        if kind == 'structure':
            for key in shape.get('required', []):
                if value.get(key) is None:
                    yield f'{at_}: {key} is missing'
            for key, one in value.items():
                if key not in shape['members']:
                    yield f'{at_}: no member {key}'
                elif one is not None:
                    yield from self._problems(shape['members'][key]['shape'], one, f'{at}.{key}'.lstrip('.'))
        elif kind == 'list':
            yield from self._size(shape, len(value), at_)
            for i, one in enumerate(value):
                yield from self._problems(shape['member']['shape'], one, f'{at}[{i}]')
        elif kind == 'map':
            yield from self._size(shape, len(value), at_)
            for key, one in value.items():
                yield from self._problems(shape['key']['shape'], key, f'{at}, key {key[:40]}')
                yield from self._problems(shape['value']['shape'], one, f'{at}[{key[:40]}]')
        elif kind == 'string':
            yield from self._size(shape, len(value), at_)
            if 'enum' in shape and value not in shape['enum']:
                yield f'{at_}: {value[:80]!r} is none of the values that it may have'
            if 'pattern' in shape and not self._matches(shape['pattern'], value):
                yield f'{at_}: {value[:80]!r} does not match {shape["pattern"]}'
        elif kind in ('integer', 'long'):
            yield from self._size(shape, value, at_)

    @staticmethod
    def _size(shape, size, at):
        if size < shape.get('min', size):
            yield f'{at}: {size} is less than {shape["min"]}'
        if size > shape.get('max', size):
            yield f'{at}: {size} is more than {shape["max"]}'

    @staticmethod
    def _matches(pattern, value):
        for java, python in JAVA.items():
            pattern = pattern.replace(java, python)
        return re.fullmatch(pattern, value) is not None
